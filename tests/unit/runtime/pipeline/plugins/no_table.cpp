// A shared library that is no plugin.
extern "C" int Unrelated() { return 1; }
