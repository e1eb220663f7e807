// expect: there is no mistake in this file
// rejected: it compiles
int main() {}
