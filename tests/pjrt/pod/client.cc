#include "tests/pjrt/pod/client.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace emulated_pod {
namespace {

constexpr const char kDeleted[] = "Invalid buffer passed: buffer has been deleted or donated.";

}  // namespace

Result<Buffer::Content> Buffer::content() const {
  std::lock_guard lock(mutex_);
  if (!deleted_) return content_;
  return fail(Code::kInvalidArgument, kDeleted);
}

bool Buffer::deleted() const {
  std::lock_guard lock(mutex_);
  return deleted_;
}

bool Buffer::remove() {
  Content content;  // goes outside the lock
  std::lock_guard lock(mutex_);
  deleted_ = true;
  std::swap(content, content_);
  return content.memory == nullptr || content.memory->readers == 0;
}

Result<std::shared_ptr<Event>> Buffer::read(void* destination) const {
  Content content;
  {
    std::lock_guard lock(mutex_);
    if (deleted_) return fail(Code::kInvalidArgument, kDeleted);
    content = content_;
    ++content.memory->readers;
  }
  auto done = std::make_shared<Event>();
  content.defined->on_ready(
      [done, destination, bytes = shape_.bytes(), memory = content.memory](const Status& status) {
        if (status && bytes > 0) std::memcpy(destination, memory->data(), bytes);
        --memory->readers;
        done->set(status);
      });
  return done;
}

Executable::Executable(std::shared_ptr<Link> link, Facts facts)
    : link_(std::move(link)), facts_(std::move(facts)) {
  for (const Shape& shape : facts_.outputs) {
    output_types.push_back(shape.type);
    output_dims.insert(output_dims.end(), shape.dims.begin(), shape.dims.end());
    output_ranks.push_back(shape.dims.size());
  }
  for (const auto& [name, value] : facts_.cost) {
    auto property = c::make<c::PJRT_NamedValue>();
    property.name = name.data();
    property.name_size = name.size();
    property.type = c::kFloat;
    property.float_value = value;
    property.value_size = 1;
    cost.push_back(property);
  }
}

Executable::~Executable() { (void)link_->post(Kind::kRelease, Writer().text(facts_.key).take()); }

Result<std::unique_ptr<Client>> Client::create(const c::PJRT_Client_Create_Args& args) {
  SLUICE_TRY(Settings settings, read_settings(args));
  std::unique_ptr<Client> client(new Client(std::move(settings)));
  SLUICE_OK(client->join());
  return client;
}

Client::~Client() {
  if (link_) link_->leave();
}

Status Client::join() {
  SLUICE_TRY(File socket, reach_pod());
  link_ = std::make_shared<Link>(std::move(socket));
  SLUICE_OK(link_->greet(settings_.worker, settings_.workers, settings_.devices, settings_.platform));
  const Status met = pod_ ? pod_->meet() : Status();
  // The pod waits as long as this; then it says who is missing.
  constexpr double kAnswer = 30;
  auto counts = met ? link_->welcome(settings_.timeout + kAnswer)
                    : Result<std::vector<int>>(tl::unexpected<Error>(met.error()));
  if (!counts) return tl::unexpected<Error>(counts.error());
  layout_ = Layout(std::move(*counts));
  arena_ = std::make_shared<Arena>(link_);
  owned_ = make_devices(settings_, layout_);
  for (Device& device : owned_) {
    all_.push_back(&device);
    if (device.addressable()) local_.push_back(&device);
  }
  return {};
}

Result<File> Client::reach_pod() {
  if (settings_.worker == 0) {
    SLUICE_TRY(pod_, Pod::open({settings_.workers, settings_.socket(), settings_.timeout}));
    return pod_->connect();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings_.timeout);
  while (true) {
    auto socket = connect_to(settings_.socket());
    if (socket || socket.error().code() != Code::kUnavailable) return socket;
    if (std::chrono::steady_clock::now() > end) {
      return fail(Code::kDeadlineExceeded, "worker ", settings_.worker, " of ", settings_.workers, " waited ",
                  settings_.timeout, " s for worker 0, which did not come: ", socket.error().what());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Result<std::unique_ptr<Buffer>> Client::put(const void* data, Shape shape, const Device& device) {
  if (!device.addressable()) {
    return fail(Code::kInvalidArgument, "Cannot copy array to non-addressable device ", device.id(),
                " of process ", device.description.worker);
  }
  const size_t bytes = shape.bytes();
  SLUICE_OK(device.memory->admit_value(static_cast<int64_t>(bytes)));
  Buffer::Content content;
  content.charge = std::make_shared<Charge>(device.memory, bytes);
  SLUICE_TRY(content.memory, arena_->allocate(bytes));
  if (bytes > 0) std::memcpy(content.memory->data(), data, bytes);
  content.defined = std::make_shared<Event>();
  content.defined->set({});
  return std::make_unique<Buffer>(device, std::move(shape), std::move(content));
}

Result<std::shared_ptr<Executable>> Client::obtain(Kind how, const std::string& body) {
  SLUICE_TRY(const std::string reply, link_->call(how, body));
  Reader in(reply);
  SLUICE_TRY(Facts facts, Facts::read(in));
  return std::make_shared<Executable>(link_, std::move(facts));
}

}  // namespace emulated_pod
