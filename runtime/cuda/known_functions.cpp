#include "runtime/known_functions.h"

#include "compiler/support/errors.h"
#include "runtime/disk_cache.h"
#include "runtime/nvrtc.h"

namespace sinter::runtime {
namespace {

CacheKey key_of(const std::string& function, int sm) {
  return {"function", nvrtc::identity(), nvrtc::options(sm), function};
}

}  // namespace

bool is_known_function(const std::string& function, int sm) {
  try {
    return DiskCache::process().find(key_of(function, sm)).hit();
  } catch (const InternalError&) {
    return false;  // no compiler: the first kernel that needs it says so
  }
}

void remember_function(const std::string& function, int sm) {
  // What hinders it has hindered the kernels before, and stands in the report.
  (void)DiskCache::process().store(key_of(function, sm), {});
}

}  // namespace sinter::runtime
