# Read by ctest before it runs a test: what every test finds in its environment.
set(ENV{SINTER_CACHE} off)
