#include "sluice/replica/store_client.h"

#include "sluice/base/strings.h"
#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Its first line: LibTorch's messages go on with a stack trace.
std::string brief(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

StoreClient::StoreClient(Store store, std::string leader, int count, std::chrono::milliseconds patience)
    : store_(std::move(store)), leader_(std::move(leader)), count_(count), patience_(patience) {}

tl::unexpected<Error> StoreClient::lost(const std::string& sign) const {
  return tl::unexpected<Error>(ending(lost_text({0}, count_, sign)));
}

template <typename Call>
auto StoreClient::ask(Call call) -> base::Result<decltype(call(std::declval<c10d::Store&>()))> {
  using Answer = decltype(call(std::declval<c10d::Store&>()));
  std::scoped_lock lock(mutex_);
  auto task = std::make_shared<std::packaged_task<Answer()>>(
      [store = store_, call = std::move(call)] { return call(*store); });
  auto answer = task->get_future();
  if (!thread_.run([task] { (*task)(); }, patience_))
    return lost(
        base::str("no answer at ", leader_, " for ", static_cast<double>(patience_.count()) / 1000, " s"));
  try {
    return answer.get();
  } catch (const std::exception& error) {
    return lost(base::str("the connection to ", leader_, " broke: ", brief(error)));
  }
}

base::Status StoreClient::set(const std::string& key, const std::string& value) {
  SLUICE_TRY([[maybe_unused]] const bool done, ask([key, value](c10d::Store& store) {
               store.set(key, bytes_of(value));
               return true;
             }));
  return {};
}

base::Result<std::string> StoreClient::get(const std::string& key) {
  return ask([key](c10d::Store& store) { return text_of(store.get(key)); });
}

base::Result<bool> StoreClient::has(const std::vector<std::string>& keys) {
  return ask([keys](c10d::Store& store) { return store.check(keys); });
}

base::Result<int64_t> StoreClient::add(const std::string& key, int64_t value) {
  return ask([key, value](c10d::Store& store) { return store.add(key, value); });
}

base::Status StoreClient::remove(const std::string& key) {
  SLUICE_TRY([[maybe_unused]] const bool was_there,
             ask([key](c10d::Store& store) { return store.deleteKey(key); }));
  return {};
}

base::Result<std::string> StoreClient::set_first(const std::string& key, const std::string& value) {
  return ask([key, value](c10d::Store& store) {
    return text_of(store.compareSet(key, std::vector<uint8_t>{}, bytes_of(value)));
  });
}

base::Result<c10::intrusive_ptr<c10d::Store>> StoreClient::clone() {
  return ask([](c10d::Store& store) { return store.clone(); });
}

}  // namespace sluice::replica
