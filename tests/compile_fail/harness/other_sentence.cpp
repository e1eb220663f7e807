// expect: a sentence that is not the one below
// rejected: no error says
#ifndef GYRE_COMPILE_PASS
static_assert(sizeof(int) == 0, "the sentence that the compiler prints");
#endif
