#include "sluice/replica/store/store_client.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/replica/admission.h"
#include "sluice/replica/loss.h"
#include "sluice/replica/store/store_server.h"

namespace sluice::replica {
namespace {

// Returns a Patience that fails after a number of calls, a tenth of a second each, not after a time: time for
// which this process itself was stopped does not count.
Patience looks(std::chrono::milliseconds patience) {
  return [patience, waited = std::chrono::milliseconds(0)]() mutable -> base::Status {
    waited += std::chrono::milliseconds(kPatienceMilliseconds);
    if (patience.count() == 0 || waited < patience) return {};
    return base::fail(Code::kDeadlineExceeded, "no answer");
  };
}

}  // namespace

base::Result<StoreConnection> StoreConnection::open(const std::vector<Endpoint>& endpoints,
                                                    const std::string& key, const Patience& patience) {
  SLUICE_TRY(Descriptor socket, connect_to(endpoints, patience));
  StoreConnection made(std::move(socket));
  const int number = made.socket_.number();
  Handshake handshake(key, StoreServer::kPurpose);
  SLUICE_OK(shake_hands(number, handshake, patience));
  made.to_server_ = Seal(handshake.key_to_server());
  made.from_server_ = Seal(handshake.key_to_client());
  return made;
}

base::Result<StoreAnswer> StoreConnection::ask(const StoreRequest& request, const Patience& patience) {
  const std::string text = text_of(request);
  if (text.size() > Seal::kMaxBytes)
    return base::fail(Code::kResourceExhausted, "a value of ", text.size(),
                      " bytes for the other processes: ", "at most ", Seal::kMaxBytes);
  SLUICE_OK(send_all(socket_.number(), to_server_.close(text), patience));
  std::string received, message;
  while (true) {
    SLUICE_TRY(const bool whole, from_server_.open(received, message));
    if (whole) break;
    SLUICE_OK(receive(socket_.number(), Seal::missing(received), received, patience));
  }
  auto answer = answer_of(message);
  if (!answer) return base::fail(Code::kDataLoss, "it gave an answer that is not valid");
  if (answer->kind == StoreAnswer::Kind::kRefused) return base::fail(Code::kResourceExhausted, answer->value);
  return std::move(*answer);
}

StoreClient::StoreClient(StoreConnection connection, std::string meeting, std::string leader, int count,
                         std::chrono::milliseconds patience)
    : connection_(std::move(connection)),
      meeting_(std::move(meeting)),
      leader_(std::move(leader)),
      count_(count),
      patience_(patience) {}

tl::unexpected<Error> StoreClient::lost(const std::string& sign) const {
  return tl::unexpected<Error>(ending(lost_text({0}, count_, sign)));
}

base::Result<StoreAnswer> StoreClient::ask(StoreOrder order, std::vector<std::string> words) {
  const bool only_keys = order == StoreOrder::kHas;
  for (size_t i = 0; i < (only_keys ? words.size() : 1); ++i) words[i] = meeting_ + ' ' + words[i];
  std::scoped_lock lock(mutex_);
  if (!broken_.empty()) return lost(broken_);
  auto answer = connection_.ask({order, std::move(words)}, looks(patience_));
  if (answer || answer.error().code() == Code::kResourceExhausted) return answer;
  broken_ =
      answer.error().code() == Code::kDeadlineExceeded
          ? base::str("no answer at ", leader_, " for ", static_cast<double>(patience_.count()) / 1000, " s")
          : base::str("the connection to ", leader_, " broke: ", answer.error().what());
  return lost(broken_);
}

base::Status StoreClient::set(const std::string& key, const std::string& value) {
  SLUICE_TRY(const auto answer, ask(StoreOrder::kSet, {key, value}));
  return {};
}

base::Result<std::string> StoreClient::get(const std::string& key) {
  SLUICE_TRY(auto answer, ask(StoreOrder::kGet, {key}));
  if (answer.kind == StoreAnswer::Kind::kYes) return std::move(answer.value);
  return base::fail(Code::kNotFound, "the store of the run no longer has \"", key, "\"");
}

base::Result<bool> StoreClient::has(const std::vector<std::string>& keys) {
  SLUICE_TRY(const auto answer, ask(StoreOrder::kHas, keys));
  return answer.kind == StoreAnswer::Kind::kYes;
}

base::Result<int64_t> StoreClient::add(const std::string& key, int64_t value) {
  SLUICE_TRY(const auto answer, ask(StoreOrder::kAdd, {key, std::to_string(value)}));
  const auto sum = base::number_of<int64_t>(answer.value);
  if (!sum)
    return base::fail(Code::kDataLoss, "the store of the run did not give a number for \"", key, "\"");
  return *sum;
}

base::Status StoreClient::remove(const std::string& key) {
  SLUICE_TRY(const auto answer, ask(StoreOrder::kRemove, {key}));
  return {};
}

base::Result<std::string> StoreClient::set_first(const std::string& key, const std::string& value) {
  SLUICE_TRY(auto answer, ask(StoreOrder::kFirst, {key, value}));
  return std::move(answer.value);
}

}  // namespace sluice::replica
