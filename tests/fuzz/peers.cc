// What another process of a run sends, or who takes itself for one: handshakes, sealed messages, orders to
// the store.
#include <string>
#include <string_view>

#include "sluice/base/text/printable.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/run_key.h"
#include "sluice/replica/store/store_table.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

constexpr size_t kAll = 64 << 10;  // bytes that the store may keep

// Orders, one behind the other, each after its length.
void ask_table(std::string_view bytes) {
  replica::StoreTable table({.key = 100, .all = kAll, .keys = 50});
  while (!bytes.empty()) {
    const size_t length = static_cast<unsigned char>(bytes[0]);
    const std::string_view order = bytes.substr(1, length);
    bytes.remove_prefix(1 + order.size());
    const auto request = replica::request_of(order);
    if (!request) continue;
    fuzz::demand(!request->words.empty(), "an order has words");
    fuzz::demand(replica::text_of(*request) == order, "an order reads back");
    const auto answer = table.answer(*request);
    fuzz::demand(table.bytes() <= kAll, "what the store keeps is bounded");
    fuzz::demand(replica::answer_of(replica::text_of(answer))->value == answer.value, "an answer reads back");
  }
}

// The bytes as they come, in pieces, on a connection whose key they do not have.
void open_seal(std::string_view bytes) {
  replica::Seal seal("a key that the input does not have");
  std::string received, message;
  for (size_t at = 0; at < bytes.size(); at += 7) {
    received += bytes.substr(at, 7);
    fuzz::demand(replica::Seal::missing(received) <= replica::Seal::kMaxBytes + 64, "a message is bounded");
    const auto opened = seal.open(received, message);
    if (!opened) return;
    fuzz::demand(!*opened, "nobody without the key can seal a message");
  }
}

void shake_hands(std::string_view bytes) {
  replica::Handshake server("the key", "store"), client("the key", "store");
  server.greeting();
  fuzz::demand(server.answer(bytes).empty(), "nobody without the key is answered");
  const std::string reply = client.reply(bytes);
  fuzz::demand(reply.empty() || reply.size() == replica::Handshake::kReplyBytes, "a reply is whole or none");
  fuzz::demand(!client.accepts(bytes), "no server without the key is believed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ask_table(bytes);
  open_seal(bytes);
  shake_hands(bytes);
  const std::string reason = replica::ending(std::string(bytes)).what();
  fuzz::demand(reason.size() <= 4 * 4096 + 8 && reason == base::printable(reason), "a reason can be shown");
  return 0;
}
