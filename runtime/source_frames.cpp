#include "runtime/source_frames.h"

#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDie.h>
#include <llvm/DebugInfo/Symbolize/Symbolize.h>
#include <llvm/Object/ObjectFile.h>

#include <map>
#include <memory>
#include <mutex>

#include "compiler/support/symbol_name.h"

namespace sinter::runtime {
namespace {

using llvm::DWARFDie;

/// The declaration that an inlined or defined function names, with the scopes around it.
DWARFDie declaration_of(DWARFDie function) {
  for (const auto attribute : {llvm::dwarf::DW_AT_abstract_origin, llvm::dwarf::DW_AT_specification}) {
    if (const DWARFDie named = function.getAttributeValueAsReferencedDie(attribute)) function = named;
  }
  return function;
}

/// "a::(anonymous namespace)::Net::forward"; empty where a part has no name.
std::string qualified_name(const DWARFDie& function) {
  DWARFDie at = declaration_of(function);
  const char* own = at.getShortName();
  if (own == nullptr) return {};
  std::string name = own;
  for (at = at.getParent(); at; at = at.getParent()) {
    const auto tag = at.getTag();
    const bool is_class = tag == llvm::dwarf::DW_TAG_class_type || tag == llvm::dwarf::DW_TAG_structure_type;
    if (!is_class && tag != llvm::dwarf::DW_TAG_namespace) break;
    const char* scope = at.getShortName();
    if (scope == nullptr && is_class) return {};
    name = std::string(scope == nullptr ? "(anonymous namespace)" : scope) + "::" + name;
  }
  return name;
}

/// A program or library with its debugging information.
struct ReadProgram {
  llvm::object::OwningBinary<llvm::object::ObjectFile> file;
  std::unique_ptr<llvm::DWARFContext> debug;
};

/// LLVM's readers, which are not thread-safe and keep what they have read.
class ProgramReader {
 public:
  std::vector<SourceFrame> frames_at(const std::string& file, uint64_t offset) {
    const std::lock_guard lock(mutex_);
    auto frames = from_debug_information(file, offset);
    return frames.empty() ? from_symbols(file, offset) : frames;
  }

 private:
  std::vector<SourceFrame> from_debug_information(const std::string& file, uint64_t offset) {
    ReadProgram* program = find(file);
    if (program == nullptr) return {};
    llvm::DWARFCompileUnit* unit = program->debug->getCompileUnitForCodeAddress(offset);
    if (unit == nullptr) return {};
    llvm::SmallVector<DWARFDie, 8> functions;
    unit->getInlinedChainForAddress(offset, functions);
    const llvm::DIInliningInfo found = program->debug->getInliningInfoForAddress(
        {offset, llvm::object::SectionedAddress::UndefSection},
        {llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath, llvm::DINameKind::ShortName});
    if (found.getNumberOfFrames() != functions.size()) return {};
    std::vector<SourceFrame> frames;
    for (uint32_t i = 0; i < functions.size(); ++i) {
      add(frames, qualified_name(functions[i]), found.getFrame(i));
    }
    return frames;
  }

  std::vector<SourceFrame> from_symbols(const std::string& file, uint64_t offset) {
    auto found = symbols_.symbolizeCode(file, {offset, llvm::object::SectionedAddress::UndefSection});
    if (!found) {
      llvm::consumeError(found.takeError());
      return {};
    }
    std::vector<SourceFrame> frames;
    if (found->FunctionName != llvm::DILineInfo::BadString) add(frames, demangled(found->FunctionName), *found);
    return frames;
  }

  static void add(std::vector<SourceFrame>& frames, std::string function, const llvm::DILineInfo& info) {
    const bool placed = info.FileName != llvm::DILineInfo::BadString && info.Line != 0;
    frames.push_back({std::move(function), placed ? info.FileName : std::string(), placed ? info.Line : 0});
  }

  /// Null for a file that cannot be read.
  ReadProgram* find(const std::string& file) {
    const auto [known, added] = programs_.try_emplace(file);
    if (added) known->second = read(file);
    return known->second.get();
  }

  static std::unique_ptr<ReadProgram> read(const std::string& file) {
    auto object = llvm::object::ObjectFile::createObjectFile(file);
    if (!object) {
      llvm::consumeError(object.takeError());
      return nullptr;
    }
    auto program = std::make_unique<ReadProgram>();
    program->file = std::move(*object);
    program->debug = llvm::DWARFContext::create(*program->file.getBinary());
    return program;
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ReadProgram>> programs_;
  llvm::symbolize::LLVMSymbolizer symbols_{[] {
    llvm::symbolize::LLVMSymbolizer::Options options;
    options.Demangle = false;
    return options;
  }()};
};

}  // namespace

std::vector<SourceFrame> source_frames(const std::string& file, uint64_t offset) {
  // Never destroyed: profiles may be taken until the process ends.
  static ProgramReader& reader = *new ProgramReader();
  return reader.frames_at(file, offset);
}

}  // namespace sinter::runtime
