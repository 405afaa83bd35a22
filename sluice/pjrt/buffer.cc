#include "sluice/pjrt/buffer.h"

#include <atomic>
#include <utility>
#include <vector>

#include "sluice/base/check.h"
#include "sluice/base/log.h"
#include "sluice/pjrt/client.h"

namespace sluice::pjrt {
namespace {

std::atomic<int64_t> made_buffers{0}, freed_buffers{0};

}  // namespace

HostView::HostView(HostView&& other) noexcept
    : client_(other.client_), buffer_(std::exchange(other.buffer_, nullptr)), data_(other.data_) {}

HostView::~HostView() {
  if (buffer_ == nullptr) return;
  auto args = c::make<c::PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  args.buffer = buffer_;
  if (auto status = client_->api().call(args); !status)
    base::warn("leaving a buffer: ", status.error().what());
}

Buffer::Buffer(std::shared_ptr<Client> client, Device* device, const stablehlo::Type* type,
               c::PJRT_Buffer* raw)
    : client_(std::move(client)), device_(device), type_(type), raw_(raw) {
  if (raw_ != nullptr) made_buffers.fetch_add(1, std::memory_order_relaxed);
}

Buffer::Buffer(Buffer&& other) noexcept
    : client_(std::move(other.client_)),
      device_(other.device_),
      type_(other.type_),
      raw_(std::exchange(other.raw_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    destroy();
    client_ = std::move(other.client_);
    device_ = other.device_;
    type_ = other.type_;
    raw_ = std::exchange(other.raw_, nullptr);
  }
  return *this;
}

Buffer::~Buffer() { destroy(); }

void Buffer::destroy() {
  if (raw_ == nullptr) return;
  auto args = c::make<c::PJRT_Buffer_Destroy_Args>();
  args.buffer = std::exchange(raw_, nullptr);
  if (auto status = client_->api().call(args); !status) {
    base::warn("destroying a buffer: ", status.error().what());
  }
  freed_buffers.fetch_add(1, std::memory_order_relaxed);
}

int64_t Buffer::made() { return made_buffers.load(std::memory_order_relaxed); }
int64_t Buffer::freed() { return freed_buffers.load(std::memory_order_relaxed); }

base::Result<Event> Buffer::to_host(void* destination, size_t bytes) const {
  SLUICE_CHECK(raw_ != nullptr, "an empty buffer has no value to copy");
  if (bytes != type_->bytes()) {
    return base::fail(Code::kInvalidArgument, "cannot copy a buffer of ", type_->str(),
                      " to the host: expected room for ", type_->bytes(), " bytes, found ", bytes);
  }
  // The layout is explicit, since a device may store dimensions in another order.
  const size_t rank = type_->dims.size();
  constexpr size_t kUsualRank = 8;
  int64_t order[kUsualRank];
  std::vector<int64_t> long_order;
  int64_t* minor_to_major = order;
  if (rank > kUsualRank) {
    long_order.resize(rank);
    minor_to_major = long_order.data();
  }
  for (size_t i = 0; i < rank; ++i) minor_to_major[i] = static_cast<int64_t>(rank - 1 - i);
  auto layout = c::make<c::PJRT_Buffer_MemoryLayout>();
  layout.tiled = c::make<c::PJRT_Buffer_MemoryLayout_Tiled>();
  layout.tiled.minor_to_major = minor_to_major;
  layout.tiled.minor_to_major_size = rank;
  auto args = c::make<c::PJRT_Buffer_ToHostBuffer_Args>();
  args.src = raw_;
  args.host_layout = &layout;
  args.dst = destination;
  args.dst_size = bytes;
  SLUICE_OK(client_->api().call(args));
  return Event(client_->api(), args.event);
}

base::Status Buffer::read(void* destination, size_t bytes) const {
  SLUICE_TRY(const Event copied, to_host(destination, bytes));
  return copied.await();
}

base::Result<Event> Buffer::ready_event() const {
  SLUICE_CHECK(raw_ != nullptr, "an empty buffer has no value to wait for");
  auto args = c::make<c::PJRT_Buffer_ReadyEvent_Args>();
  args.buffer = raw_;
  SLUICE_OK(client_->api().call(args));
  return Event(client_->api(), args.event);
}

base::Status Buffer::await() const {
  SLUICE_TRY(const Event ready, ready_event());
  return ready.await();
}

base::Result<HostView> Buffer::host_view() const {
  SLUICE_CHECK(raw_ != nullptr, "an empty buffer has no value to look at");
  const Api& api = client_->api();
  auto place = c::make<c::PJRT_Buffer_IsOnCpu_Args>();
  place.buffer = raw_;
  SLUICE_OK(api.call(place));
  if (!place.is_on_cpu) {
    return base::fail(Code::kUnimplemented, "the memory of ", device_->kind(),
                      " cannot be read in place: copy the buffer to the host");
  }
  // The reference comes first, so that no program can take over the buffer during the wait.
  auto hold = c::make<c::PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  hold.buffer = raw_;
  SLUICE_OK(api.call(hold));
  HostView view(client_.get(), raw_, nullptr);
  SLUICE_OK(await());
  auto pointer = c::make<c::PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = raw_;
  SLUICE_OK(api.call(pointer));
  view.data_ = reinterpret_cast<const void*>(pointer.buffer_pointer);
  return view;
}

bool Buffer::deleted() const {
  if (raw_ == nullptr) return true;
  auto args = c::make<c::PJRT_Buffer_IsDeleted_Args>();
  args.buffer = raw_;
  return !client_->api().call(args) || args.is_deleted;
}

}  // namespace sluice::pjrt
