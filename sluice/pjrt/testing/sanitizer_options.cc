// Defaults for the sanitizers in this room's tests: the plugin is not instrumented, and one test asks for
// terabytes.
extern "C" {

__attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=0";
}

__attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:allocator_may_return_null=1";
}
}
