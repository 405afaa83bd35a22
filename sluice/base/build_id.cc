#include "sluice/base/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"

namespace sluice::base {
namespace {

constexpr size_t kMaxBytes = 10;  // of an id: 20 digits tell any two builds apart

// Returns the build id from the notes of a segment; "" when there is none.
std::string id_in_notes(const char* notes, size_t size) {
  const auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t{3}; };
  ElfW(Nhdr) note;
  while (size >= sizeof note) {
    std::memcpy(&note, notes, sizeof note);
    const size_t name_at = sizeof note, value_at = name_at + padded(note.n_namesz);
    const size_t end = value_at + padded(note.n_descsz);
    if (end > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name_at, "GNU", 4) == 0)
      return hexadecimal({notes + value_at, std::min<size_t>(note.n_descsz, kMaxBytes)});
    notes += end;
    size -= end;
  }
  return "";
}

struct Search {
  std::string executable, own;  // build ids
  bool own_is_executable = false;
};

// Visits one loaded file; the first is the executable.
int look(dl_phdr_info* file, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const bool is_executable = file->dlpi_name == nullptr || *file->dlpi_name == '\0';
  const auto here = reinterpret_cast<ElfW(Addr)>(&look);
  std::string id;
  bool is_own = false;
  for (size_t i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = file->dlpi_phdr[i];
    const ElfW(Addr) start = file->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && here >= start && here < start + segment.p_memsz) is_own = true;
    if (segment.p_type == PT_NOTE && id.empty())
      id = id_in_notes(reinterpret_cast<const char*>(start), segment.p_memsz);
  }
  if (is_own) search.own = id;
  if (is_own && is_executable) search.own_is_executable = true;
  if (is_executable && search.executable.empty()) search.executable = id;
  return 0;
}

std::string find_build_id() {
  Search search;
  ::dl_iterate_phdr(&look, &search);
  if (search.executable.empty()) {
    const auto file = read_file("/proc/self/exe");
    const uint32_t sum = file ? crc32c(file->data(), file->size()) : 0;
    search.executable = hexadecimal({reinterpret_cast<const char*>(&sum), sizeof sum});
  }
  if (search.own_is_executable || search.own.empty()) return search.executable;
  return search.executable + "+" + search.own;
}

}  // namespace

const std::string& build_id() {
  static const auto& id = *new std::string(find_build_id());
  return id;
}

}  // namespace sluice::base
