// Token files: two bytes say how long NAME.bin is, and NAME.idx follows it. What opens is read to its end.
// What begins as llm.c's files do in the place of the index is imported.
#include <fstream>
#include <string>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/text/token_file.h"
#include "sluice/text/tools/pack.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

// Without waiting for the disk.
void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void read_all(const text::TokenFile& file) {
  std::uint64_t tokens = 0;
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < file.documents(); ++i) {
    fuzz::demand(file.begin(i) == tokens, "a document begins where the one before it ends");
    tokens += file.length(i);
    fuzz::demand(tokens <= file.tokens(), "documents are in the file");
    ids.resize(file.length(i));
    file.copy(file.begin(i), ids.size(), ids.data());
  }
  fuzz::demand(tokens == file.tokens(), "all tokens are of documents");
  file.check(std::size_t{1} << 32);
}

void import_all(const std::string& file, const std::string& folder) {
  text::TokenImportOptions import;
  import.format = text::TokenFormat::kLlmC;
  import.files = {file};
  import.set = {.folder = folder, .overwrite = true};
  import.vocabulary = 1000;
  import.ends_with = 7;
  if (const auto report = text::import_tokens(import))
    fuzz::demand(report->tokens * 2 <= base::file_size(file).value_or(0), "tokens are those of the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  if (size < 2) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t split = std::min<std::size_t>(data[0] | std::size_t{data[1]} << 8, all.size());
  const std::string name = folder.path("a");
  const std::string_view index = all.substr(split);
  write(name + ".bin", all.substr(0, split));
  write(name + ".idx", index);
  try {
    read_all(text::TokenFile::open(name));
  } catch (const Error&) {
  }
  // Both of llm.c's first numbers have these bytes; a set waits for the disk, so nothing else is tried.
  if (index.substr(0, 4).substr(std::min<std::size_t>(2, index.size())) == "\x34\x01")
    import_all(name + ".idx", folder.path("set"));
  return 0;
}
