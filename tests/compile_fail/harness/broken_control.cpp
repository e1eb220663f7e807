// expect: fails either way
// rejected: with GYRE_COMPILE_PASS it must compile
static_assert(sizeof(int) == 0, "fails either way");
