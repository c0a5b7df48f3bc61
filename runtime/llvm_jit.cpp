#include "runtime/llvm_jit.h"

#include <dlfcn.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <atomic>
#include <string>
#include <utility>

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
void check_functions(const llvm::Module& module, const KernelSource& source) {
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() || function.isIntrinsic()) continue;
    const std::string name = function.getName().str();
    if (find_function(name.c_str()) == nullptr) fail("calls @" + name + ", which the process does not have", source);
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
struct Code {
  std::shared_ptr<const void> session;
  orc::ResourceTrackerSP tracker;

  Code(std::shared_ptr<const void> owner, orc::ResourceTrackerSP resources)
      : session(std::move(owner)), tracker(std::move(resources)) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { llvm::consumeError(tracker->remove()); }
};

}  // namespace

struct LlvmJit::Session {
  orc::JITTargetMachineBuilder target = host_target();
  std::unique_ptr<orc::LLJIT> jit;
  std::atomic<uint64_t> compiled{0};

  Session() {
    auto made = orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(target)
                    .setPlatformSetUp(orc::setUpInactivePlatform)
                    .setLinkProcessSymbolsByDefault(false)
                    .setSupportConcurrentCompilation(true)
                    .create();
    if (!made) throw InternalError("llvm", llvm::toString(made.takeError()));
    jit = std::move(*made);
    jit->getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
    jit->getMainJITDylib().addGenerator(std::make_unique<ProcessFunctions>());
  }
};

LlvmJit::LlvmJit() {
  initialise_llvm_once();
  session_ = std::make_shared<Session>();
}

LlvmJit::~LlvmJit() = default;

std::shared_ptr<const CompiledCpuKernel> LlvmJit::compile(const KernelSource& source) {
  llvm::LLVMContext context;
  const auto module = parse(source, context);
  llvm::Function* function = module->getFunction(source.name);
  if (function == nullptr) fail("the text does not define @" + source.name, source);
  const std::string symbol = source.name + "." + std::to_string(session_->compiled++);
  function->setName(symbol);
  check_functions(*module, source);

  const auto machine = take(session_->target.createTargetMachine(), source);
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple().str());
  optimise(*module, *machine);
  auto object = take(orc::SimpleCompiler(*machine)(*module), source);

  orc::LLJIT& jit = *session_->jit;
  orc::ResourceTrackerSP tracker = jit.getMainJITDylib().createResourceTracker();
  auto code = std::make_shared<const Code>(session_, tracker);
  if (auto error = jit.addObjectFile(tracker, std::move(object))) fail(llvm::toString(std::move(error)), source);
  const orc::ExecutorAddr address = take(jit.lookup(symbol), source);
  return std::make_shared<const CompiledCpuKernel>(address.toPtr<CpuKernel>(), std::move(code));
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
