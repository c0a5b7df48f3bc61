#include "runtime/llvm_jit.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/dump.h"
#include "compiler/support/errors.h"

namespace sinter::runtime {

namespace orc = llvm::orc;

namespace {

/// Address of a function of the process: a library loaded for everyone, or one LibTorch was loaded from privately.
void* find_function(const char* name) {
  if (void* address = dlsym(RTLD_DEFAULT, name)) return address;
  for (const char* library : {"libtorch_cpu.so", "libm.so.6"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* address = dlsym(handle, name);
    dlclose(handle);  // was loaded before, stays loaded
    if (address != nullptr) return address;
  }
  return nullptr;
}

/// Defines the process's functions in a JIT library when generated code asks for them.
class ProcessFunctions : public orc::DefinitionGenerator {
 public:
  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& library, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& names) override {
    orc::SymbolMap found;
    for (const auto& [name, flags] : names) {
      void* address = find_function((*name).str().c_str());
      if (address == nullptr) continue;
      found[name] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    }
    return found.empty() ? llvm::Error::success() : library.define(orc::absoluteSymbols(std::move(found)));
  }
};

[[noreturn]] void fail(const std::string& message, const KernelSource& source) {
  std::string log;  // as comments, so that the file stays LLVM IR
  for (size_t start = 0; start < message.size();) {
    const size_t end = std::min(message.find('\n', start), message.size());
    log += "; " + message.substr(start, end - start) + "\n";
    start = end + 1;
  }
  throw InternalError("llvm", message, save_artifact(source.name, "ll", source.comment + source.text + log));
}

template <class T>
T take(llvm::Expected<T> value, const KernelSource& source) {
  if (!value) fail(llvm::toString(value.takeError()), source);
  return std::move(*value);
}

std::unique_ptr<llvm::Module> parse(const KernelSource& source, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(source.text, diagnostic, context);
  std::string log;
  llvm::raw_string_ostream stream(log);
  if (!module) {
    diagnostic.print(source.name.c_str(), stream, /*ShowColors=*/false);
    fail(log, source);
  }
  if (llvm::verifyModule(*module, &stream)) fail(log, source);
  return module;
}

/// The text is vectorised and unrolled already: what is left is inlining, merging equal address arithmetic and moving
/// it out of loops. InstCombine is left out on purpose: it narrows fptrunc(min(fpext, fpext)) to arithmetic in half,
/// which CPUs without AVX512-FP16 run lane by lane, and in LLVM 19 with the wrong NaN.
void optimise(llvm::Module& module, llvm::TargetMachine& target) {
  llvm::PassBuilder builder(&target);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);

  llvm::ModulePassManager inlining;
  inlining.addPass(llvm::AlwaysInlinerPass());
  inlining.run(module, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions{}), /*UseMemorySSA=*/true,
                                                       /*UseBlockFrequencyInfo=*/false));
  passes.addPass(llvm::EarlyCSEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

/// Fails on a function the process does not have; the linker's own message would not name it.
void check_functions(llvm::MemoryBufferRef code, const KernelSource& source) {
  const auto object = take(llvm::object::ObjectFile::createObjectFile(code), source);
  for (const llvm::object::SymbolRef& symbol : object->symbols()) {
    if ((take(symbol.getFlags(), source) & llvm::object::SymbolRef::SF_Undefined) == 0) continue;
    const std::string name = take(symbol.getName(), source).str();
    if (name.empty() || find_function(name.c_str()) != nullptr) continue;
    fail("calls @" + name + ", which the process does not have", source);
  }
}

orc::JITTargetMachineBuilder host_target() {
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target) throw InternalError("llvm", llvm::toString(target.takeError()));
  target->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  return std::move(*target);
}

void initialise_llvm_once() {
  static const bool done = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)done;
}

/// A linked kernel: frees its memory at the end, before the session that holds it may end.
struct Linked {
  std::shared_ptr<const void> session;
  orc::JITDylib& library;

  Linked(std::shared_ptr<const void> owner, orc::JITDylib& own) : session(std::move(owner)), library(own) {}
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;
  ~Linked() { llvm::consumeError(library.getExecutionSession().removeJITDylib(library)); }
};

/// What the machine code of a text depends on beside LLVM's version. `passes` stands for optimise().
std::string describe(const orc::JITTargetMachineBuilder& target) {
  constexpr const char* passes = "always-inline early-cse licm early-cse, code generation at its default level";
  std::vector<std::string> features = target.getFeatures().getFeatures();
  std::sort(features.begin(), features.end());
  return fmt::format("{} {} {}; {}", target.getTargetTriple().str(), target.getCPU(), fmt::join(features, ","), passes);
}

}  // namespace

struct LlvmJit::Session {
  orc::JITTargetMachineBuilder target = host_target();
  std::string target_text = describe(target);
  std::unique_ptr<orc::LLJIT> jit;
  std::atomic<uint64_t> linked{0};
  std::mutex mutex;
  std::vector<std::unique_ptr<llvm::TargetMachine>> idle;  ///< machines that compile nothing now

  Session() {
    auto made = orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(target)
                    .setPlatformSetUp(orc::setUpInactivePlatform)
                    .setLinkProcessSymbolsByDefault(false)
                    .setSupportConcurrentCompilation(false)
                    .create();
    if (!made) throw InternalError("llvm", llvm::toString(made.takeError()));
    jit = std::move(*made);
    jit->getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }

  /// The object file that a text compiles to. It defines a function of the kernel's name.
  std::vector<char> compile(const KernelSource& source) {
    llvm::LLVMContext context;
    const auto module = parse(source, context);
    if (module->getFunction(source.name) == nullptr) fail("the text does not define @" + source.name, source);
    auto machine = machine_for(source);
    module->setDataLayout(machine->createDataLayout());
    module->setTargetTriple(machine->getTargetTriple().str());
    optimise(*module, *machine);
    const auto object = take(orc::SimpleCompiler(*machine)(*module), source);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(machine));
    return {object->getBufferStart(), object->getBufferEnd()};
  }

  /// A machine compiles one kernel after the other. Making one takes a tenth of what compiling a small kernel takes.
  std::unique_ptr<llvm::TargetMachine> machine_for(const KernelSource& source) {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    return take(target.createTargetMachine(), source);
  }
};

LlvmJit::LlvmJit(DiskCache& cache) : cache_(cache) {
  initialise_llvm_once();
  session_ = std::make_shared<Session>();
}

LlvmJit::~LlvmJit() = default;

std::shared_ptr<const CompiledCpuKernel> LlvmJit::compile(const KernelSource& source) {
  const CacheKey key{"llvm", "LLVM " LLVM_VERSION_STRING, session_->target_text, source.text};
  MachineCode code = find_or_build(cache_, key, [&] { return session_->compile(source); });
  auto object = llvm::MemoryBuffer::getMemBufferCopy({code.bytes.data(), code.bytes.size()}, source.name);
  check_functions(*object, source);

  // A library of its own: kernels of one name do not meet.
  orc::LLJIT& jit = *session_->jit;
  const uint64_t number = session_->linked++;
  orc::JITDylib& library = jit.getExecutionSession().createBareJITDylib(fmt::format("{}.{}", source.name, number));
  auto linked = std::make_shared<const Linked>(session_, library);
  library.addGenerator(std::make_unique<ProcessFunctions>());
  if (auto error = jit.addObjectFile(library, std::move(object))) fail(llvm::toString(std::move(error)), source);
  const orc::ExecutorAddr address = take(jit.lookup(library, source.name), source);
  return std::make_shared<const CompiledCpuKernel>(address.toPtr<CpuKernel>(), std::move(linked),
                                                   std::move(code.provenance));
}

int host_vector_bits() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    return 512;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 128;
}

}  // namespace sinter::runtime
