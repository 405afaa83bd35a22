// CRC-32C (Castagnoli): the checksum of Cloud Storage's objects and of TensorBoard's event files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::base {

// Returns the checksum of `size` bytes. `crc` is the checksum of bytes that precede them. Uses the
// processor's instruction if it has one.
uint32_t crc32c(const void* bytes, size_t size, uint32_t crc = 0);
// Computes crc32c() with tables only: for processors without the instruction, and for the test that compares
// both.
uint32_t crc32c_portable(const void* bytes, size_t size, uint32_t crc = 0);
// Returns the checksum of two parts one after the other, from their checksums and the length of the second.
uint32_t crc32c_combine(uint32_t first, uint32_t second, uint64_t second_size);

}  // namespace sluice::base
