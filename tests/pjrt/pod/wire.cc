#include "tests/pjrt/pod/wire.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace emulated_pod {
namespace {

struct Header {
  uint32_t kind = 0;
  uint32_t has_file = 0;
  uint64_t size = 0;
};

tl::unexpected<Error> system_error(const char* what) {
  return fail(Code::kUnavailable, what, ": ", std::strerror(errno));
}

// Room for one descriptor beside a message.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
};

Status send_all(int socket, const void* data, size_t size, int file) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    iovec part{const_cast<char*>(next), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    Control control{};
    if (file >= 0) {
      message.msg_control = control.bytes;
      message.msg_controllen = sizeof control.bytes;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("sending to a process of the pod");
    file = -1;
    next += sent;
    size -= static_cast<size_t>(sent);
  }
  return {};
}

Status receive_all(int socket, void* data, size_t size, File* file) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    iovec part{next, size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    Control control{};
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("receiving from a process of the pod");
    if (got == 0) return fail(Code::kUnavailable, "the connection was closed");
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(head), sizeof received);
      File taken(received);
      if (file != nullptr) *file = std::move(taken);
    }
    next += got;
    size -= static_cast<size_t>(got);
  }
  return {};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Code::kInvalidArgument, "EMULATED_POD_DIR: the socket's path ", path, " has ", path.size(),
                " letters, expected less than ", sizeof address.sun_path, ": choose a shorter folder");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Writer& Writer::number(uint64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

Writer& Writer::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
  return *this;
}

Writer& Writer::status(const Status& value) {
  number(value ? 0 : static_cast<uint64_t>(value.error().code()));
  return text(value ? "" : value.error().what());
}

uint64_t Reader::number() {
  uint64_t value = 0;
  if (rest_.size() < sizeof value) {
    broken_ = true;
    return 0;
  }
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string_view Reader::text() {
  const uint64_t size = number();
  if (size > rest_.size()) {
    broken_ = true;
    return {};
  }
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

Status Reader::status() {
  const uint64_t code = number();
  const std::string_view message = text();
  if (code == 0 && !broken_) return {};
  return fail(broken_ ? Code::kInternal : static_cast<Code>(code), message);
}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status Channel::send(Kind kind, std::string_view body, int file) {
  const Header header{static_cast<uint32_t>(kind), file >= 0, body.size()};
  std::lock_guard lock(sending_);
  SLUICE_OK(send_all(socket_.fd(), &header, sizeof header, file));
  return send_all(socket_.fd(), body.data(), body.size(), -1);
}

Result<Message> Channel::receive() {
  Header header;
  Message message;
  SLUICE_OK(receive_all(socket_.fd(), &header, sizeof header, &message.file));
  if (header.has_file != 0 && !message.file.open()) {
    return fail(Code::kResourceExhausted,
                "a process of the pod sent a file that could not be opened here: ", "too many open files?");
  }
  message.kind = static_cast<Kind>(header.kind);
  message.body.resize(header.size);
  SLUICE_OK(receive_all(socket_.fd(), message.body.data(), message.body.size(), nullptr));
  return message;
}

void Channel::close() { ::shutdown(socket_.fd(), SHUT_RDWR); }

Result<std::pair<File, File>> connected_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair");
  return std::pair<File, File>(File(ends[0]), File(ends[1]));
}

Result<File> listen_at(const std::string& path) {
  SLUICE_TRY(const sockaddr_un address, address_of(path));
  if (connect_to(path)) {
    return fail(Code::kAlreadyExists, "another process is worker 0 of the pod at ", path,
                ": give each process an index of its own and each pod a folder of its own");
  }
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::unlink(path.c_str());
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.fd(), 128) != 0) {
    return fail(Code::kFailedPrecondition, "cannot listen at ", path, ": ", std::strerror(errno),
                "; EMULATED_POD_DIR is to be a folder that can be written to");
  }
  return socket;
}

Result<File> connect_to(const std::string& path) {
  SLUICE_TRY(const sockaddr_un address, address_of(path));
  File socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error(path.c_str());
  return socket;
}

Result<File> accept_from(const File& listening) {
  while (true) {
    const int fd = ::accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return File(fd);
    if (errno != EINTR && errno != ECONNABORTED) return system_error("accept");
  }
}

void stop_listening(const File& listening) { ::shutdown(listening.fd(), SHUT_RDWR); }

}  // namespace emulated_pod
