#include "sluice/base/formats/crc32c.h"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace sluice::base {
namespace {

// Multiplies polynomials over GF(2) modulo Castagnoli's; the lowest power is in the highest bit.
constexpr uint32_t kPolynomial = 0x82F63B78u;

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = b >> 1 ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// x^(8·bytes): the factor that `bytes` zeros after a text apply to its checksum.
constexpr uint32_t shift_by(uint64_t bytes) {
  uint32_t power = 1u << 31, square = 1u << 23;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the checksum of the byte b followed by k zeros.
Tables byte_tables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t value = b;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (uint32_t b = 0; b < 256; ++b)
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xFF];
  return tables;
}

#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
#define SLUICE_CRC_TARGET __attribute__((target("sse4.2")))
#define SLUICE_CRC_WORD(crc, word) static_cast<uint32_t>(__builtin_ia32_crc32di(crc, word))
#define SLUICE_CRC_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
#define SLUICE_CRC_TARGET __attribute__((target("+crc")))
#define SLUICE_CRC_WORD(crc, word) __crc32cd(crc, word)
#define SLUICE_CRC_BYTE(crc, byte) __crc32cb(crc, byte)
bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

// The instruction takes three cycles and one can begin in each cycle: three stretches are summed in parallel.
constexpr size_t kStretch = 4096;

// shifted[i][b]: the effect of kStretch zeros on the byte b at place i of a checksum.
std::array<std::array<uint32_t, 256>, 4> shift_tables() {
  std::array<std::array<uint32_t, 256>, 4> tables{};
  const uint32_t power = shift_by(kStretch);
  for (uint32_t place = 0; place < 4; ++place)
    for (uint32_t b = 0; b < 256; ++b) tables[place][b] = multiply(power, b << 8 * place);
  return tables;
}

uint32_t after_stretch(uint32_t crc) {
  static const auto tables = shift_tables();
  return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^
         tables[3][crc >> 24];
}

inline uint64_t word_at(const unsigned char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

SLUICE_CRC_TARGET uint32_t crc_by_instruction(const unsigned char* at, size_t size, uint32_t crc) {
  for (; size >= 3 * kStretch; at += 3 * kStretch, size -= 3 * kStretch) {
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < kStretch; i += 8) {
      crc = SLUICE_CRC_WORD(crc, word_at(at + i));
      second = SLUICE_CRC_WORD(second, word_at(at + kStretch + i));
      third = SLUICE_CRC_WORD(third, word_at(at + 2 * kStretch + i));
    }
    crc = after_stretch(after_stretch(crc) ^ second) ^ third;
  }
  for (; size >= 8; at += 8, size -= 8) crc = SLUICE_CRC_WORD(crc, word_at(at));
  for (; size > 0; ++at, --size) crc = SLUICE_CRC_BYTE(crc, *at);
  return crc;
}
#endif

}  // namespace

uint32_t crc32c_portable(const void* bytes, size_t size, uint32_t crc) {
  static const Tables tables = byte_tables();
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; size >= 8; at += 8, size -= 8) {
    crc ^= static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 |
           static_cast<uint32_t>(at[2]) << 16 | static_cast<uint32_t>(at[3]) << 24;
    crc = tables[7][crc & 0xFF] ^ tables[6][crc >> 8 & 0xFF] ^ tables[5][crc >> 16 & 0xFF] ^
          tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
  }
  for (; size > 0; ++at, --size) crc = tables[0][(crc ^ *at) & 0xFF] ^ crc >> 8;
  return ~crc;
}

uint32_t crc32c(const void* bytes, size_t size, uint32_t crc) {
#if defined(__x86_64__) || defined(__aarch64__)
  static const bool instruction = has_instruction();
  if (instruction) return ~crc_by_instruction(static_cast<const unsigned char*>(bytes), size, ~crc);
#endif
  return crc32c_portable(bytes, size, crc);
}

uint32_t crc32c_combine(uint32_t first, uint32_t second, uint64_t second_size) {
  return multiply(shift_by(second_size), first) ^ second;
}

}  // namespace sluice::base
