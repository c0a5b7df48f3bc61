#include "frontend/function/handle.h"

#include <set>

#include "compiler/support/environment.h"

namespace sinter::detail {
namespace {

using frontend::NamedModule;

void check(const Options& options, bool is_module) {
  if (!(options.autotune_seconds >= 0)) throw UserError("autotune_seconds: give the seconds, or 0 to measure nothing");
  if (is_module && !options.modules.empty()) {
    throw UserError("modules: the callable is a module itself; leave the option out, or compile a lambda");
  }
  std::set<std::string> names;
  for (const auto& [module_name, module] : options.modules) {
    if (module_name.empty() && options.modules.size() > 1) {
      throw UserError("modules: a module without a name; give each one a name");
    }
    if (module == nullptr) throw UserError("modules: '" + module_name + "' is empty; construct it first");
    if (!names.insert(module_name).second) throw UserError("modules: '" + module_name + "' twice; use distinct names");
  }
}

/// What disables a function; empty where nothing does.
std::string disabled_by(const Options& options) {
  static const bool environment = is_switched_on("SINTER_DISABLE");
  if (environment) return "SINTER_DISABLE is set";
  return options.enabled ? "" : "Options::enabled is false";
}

}  // namespace

Handle::Handle(Options options, std::vector<NamedModule> modules, std::string name)
    : options_(std::move(options)),
      modules_(std::move(modules)),
      name_(std::move(name)),
      disabled_(disabled_by(options_)),
      function_(make()) {}

std::shared_ptr<Function> Handle::make() const { return std::make_shared<Function>(options_, modules_, name_); }

bool Handle::call(const Flat& arguments, const Program& program, Replay& replay) {
  return function()->call(arguments, program, replay);
}

void Handle::reset() { function_.store(make(), std::memory_order_release); }

Report Handle::report() const {
  if (is_enabled()) {
    Report report = function()->report();
    report.mode = sinter::name(options_.mode);
    return report;
  }
  return {.function = name_,
          .mode = "disabled",
          .entries = {},
          .failed_at = {},
          .notes = {disabled_ + ": calls go straight to the callable"}};
}

std::shared_ptr<Handle> make_handle(Options options, std::shared_ptr<torch::nn::Module> self, const char* kind) {
  const bool is_module = std::string_view(kind) == "module";
  if (is_module && self == nullptr) throw UserError("compile: the module is empty; construct it first");
  check(options, is_module);
  auto name = options.name;
  if (name.empty()) name = is_module ? frontend::class_name(*self) : kind;
  std::vector<NamedModule> modules(options.modules.begin(), options.modules.end());
  if (is_module) modules.emplace_back("", std::move(self));
  return std::make_shared<Handle>(std::move(options), std::move(modules), std::move(name));
}

bool is_enabled(const Handle& handle) { return handle.is_enabled(); }

bool call(Handle& handle, const Flat& arguments, const Program& program, Replay& replay) {
  return handle.call(arguments, program, replay);
}

Report report(const Handle& handle) { return handle.report(); }
Stats stats(const Handle& handle) { return handle.stats(); }
void reset(Handle& handle) { handle.reset(); }

}  // namespace sinter::detail
