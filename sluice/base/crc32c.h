// CRC-32C (Castagnoli): the checksum of Cloud Storage's objects and of TensorBoard's event files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::base {

// Of `size` bytes; with `crc`, of these bytes after those whose checksum that was. Uses the processor's
// instruction where there is one.
uint32_t crc32c(const void* bytes, size_t size, uint32_t crc = 0);
// The same, by tables alone: for processors without the instruction, and for the test that compares both.
uint32_t crc32c_portable(const void* bytes, size_t size, uint32_t crc = 0);
// Of two parts one after the other, from the checksums of each and the length of the second.
uint32_t crc32c_combine(uint32_t first, uint32_t second, uint64_t second_size);

}  // namespace sluice::base
