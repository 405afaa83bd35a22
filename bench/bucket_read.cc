// How quickly an object is read from a bucket, beside curl with as many ranges in flight on the same server:
// a process of its own on the loopback interface, which answers with sendfile.
//
//   bench_bucket_read [--store gs] [--mb 1024] [--ranges 8] [--range-mb 16] [--rounds 5]    or --store s3
//
// Rounds alternate; the figures are medians, in GB/s, as one line of JSON.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/random.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/stores/s3.h"

namespace {

using sluice::base::str;

struct File {
  std::string path;
  std::size_t size = 0;
  std::uint32_t crc32c = 0;
};

File make_file(const std::string& path, std::size_t size) {
  auto file = sluice::base::value_or_throw(sluice::base::AtomicFile::create(path));
  std::string piece(1 << 20, '\0');
  sluice::base::Random random(1);
  for (char& byte : piece) byte = static_cast<char>(random());
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < size; done += piece.size()) {
    sluice::base::value_or_throw(file.write(piece));
    crc = sluice::base::crc32c(piece.data(), piece.size(), crc);
  }
  sluice::base::value_or_throw(file.commit());
  return {path, size, crc};
}

void send_text(int connection, const std::string& text) {
  if (::send(connection, text.data(), text.size(), MSG_NOSIGNAL) < 0) std::perror("send");
}

// Answers the facts of an object, and ranges of it, as Cloud Storage and as S3.
void answer(int connection, int descriptor, const File& file, const std::string& head) {
  const std::size_t at = head.find("Range: bytes=");
  const std::string crc = sluice::cloud::base64_of_crc32c(file.crc32c);
  if (head.starts_with("HEAD"))
    return send_text(connection, str("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nx-amz-checksum-crc32c: ", crc,
                                     "\r\nContent-Length: ", file.size, "\r\n\r\n"));
  if (head.starts_with("GET /storage") && head.find("alt=media") == std::string::npos) {
    const std::string body =
        str("{\"name\":\"x\",\"size\":\"", file.size, "\",\"generation\":\"1\",\"crc32c\":\"", crc, "\"}");
    return send_text(connection, str("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }
  std::size_t first = 0, last = file.size - 1;
  if (at != std::string::npos) std::sscanf(head.c_str() + at, "Range: bytes=%zu-%zu", &first, &last);
  send_text(connection, str("HTTP/1.1 206 Partial Content\r\nContent-Length: ", last - first + 1,
                            "\r\nContent-Range: bytes ", first, "-", last, "/", file.size, "\r\n\r\n"));
  off_t offset = static_cast<off_t>(first);
  while (static_cast<std::size_t>(offset) <= last)
    if (::sendfile(connection, descriptor, &offset, last + 1 - static_cast<std::size_t>(offset)) <= 0) return;
}

void serve(int connection, const File& file) {
  const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC), on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::string text;
  char piece[4096];
  while (true) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      answer(connection, descriptor, file, text.substr(0, end));
      text.erase(0, end + 4);
      continue;
    }
    const ssize_t got = ::recv(connection, piece, sizeof piece, 0);
    if (got <= 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  ::close(connection);
  ::close(descriptor);
}

// A child with the server; its port. It ends with this process.
int start_server(const File& file, pid_t& child) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0)
    std::abort();
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_IGN);
    while (true) {
      const int connection = ::accept(listener, nullptr, nullptr);
      if (connection >= 0) std::thread(serve, connection, std::cref(file)).detach();
    }
  }
  ::close(listener);
  return ntohs(address.sin_port);
}

std::unique_ptr<sluice::cloud::Store> store_at(const std::string& endpoint, bool s3) {
  using namespace sluice::cloud;
  auto http = std::make_shared<Http>();
  if (!s3) return std::make_unique<Storage>(endpoint, Access{http, anonymous_credentials(), true});
  const auto keys = [] { return AwsKeys{"id", "secret", ""}; };
  return std::make_unique<S3>(S3Settings{endpoint}, http,
                              std::make_shared<AwsCredentials>("the benchmark", keys));
}

double read_ours(const sluice::cloud::Store& store, const sluice::cloud::ReadOptions& options,
                 std::size_t expected) {
  const sluice::base::Stopwatch clock;
  auto remote = sluice::base::value_or_throw(store.find({"b", "x"}));
  const auto reader = sluice::base::value_or_throw(sluice::cloud::open_reader(std::move(remote), options));
  // As curl hands its bytes on to /dev/null: from where they are.
  std::size_t bytes = 0, got = 0;
  while ((got = sluice::base::value_or_throw(reader->next(256 << 10)).size()) > 0) bytes += got;
  if (bytes != expected) std::abort();
  return static_cast<double>(bytes) / clock.seconds() / 1e9;
}

// One curl a range, all at once; or one curl that does all of them side by side.
double read_curl(const std::string& address, int ranges, std::size_t size, bool one_process) {
  const std::string url = "'" + address + "'";
  std::string command =
      one_process ? str("exec curl -s -Z --parallel-immediate --parallel-max ", ranges) : "";
  for (int i = 0; i < ranges; ++i) {
    const std::size_t first = size * static_cast<std::size_t>(i) / static_cast<std::size_t>(ranges);
    const std::size_t last = size * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(ranges) - 1;
    const std::string one = str(" -r ", first, "-", last, " -o /dev/null ", url);
    command += one_process ? str(i > 0 ? " --next" : "", one) : str("curl -s", one, " & ");
  }
  command += one_process ? " 2>/dev/null" : "wait";
  const sluice::base::Stopwatch clock;
  if (std::system(command.c_str()) != 0) std::abort();
  return static_cast<double>(size) / clock.seconds() / 1e9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::size_t> flags = {
      {"--mb", 1024}, {"--ranges", 8}, {"--range-mb", 16}, {"--rounds", 5}};
  bool s3 = false;
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::string(argv[i]) == "--store")
      s3 = std::string(argv[i + 1]) == "s3";
    else
      flags[argv[i]] = std::strtoul(argv[i + 1], nullptr, 10);
  const auto folder = sluice::base::value_or_throw(sluice::base::TemporaryDirectory::create("gs-read"));
  const File file = make_file(folder.path("x"), flags["--mb"] << 20);
  pid_t child = -1;
  const std::string endpoint = str("http://127.0.0.1:", start_server(file, child));
  const auto store = store_at(endpoint, s3);
  const std::string address = endpoint + (s3 ? "/b/x" : "/storage/v1/b/b/o/x?alt=media");
  const int ranges = static_cast<int>(flags["--ranges"]);
  sluice::cloud::ReadOptions options;
  options.ranges = ranges;
  options.range_bytes = flags["--range-mb"] << 20;
  std::vector<double> ours, processes, one;
  for (std::size_t round = 0; round < flags["--rounds"]; ++round) {
    ours.push_back(read_ours(*store, options, file.size));
    processes.push_back(read_curl(address, ranges, file.size, false));
    one.push_back(read_curl(address, ranges, file.size, true));
  }
  const double curl = std::max(median(processes), median(one));
  std::printf(
      "{\"store\": \"%s\", \"bytes\": %zu, \"ranges\": %d, \"range_bytes\": %zu, \"rounds\": %zu, "
      "\"sluice_gb_s\": %.3f, "
      "\"curl_processes_gb_s\": %.3f, \"curl_parallel_gb_s\": %.3f, \"share_of_best_curl\": %.3f}\n",
      s3 ? "s3" : "gs", file.size, ranges, static_cast<std::size_t>(options.range_bytes), flags["--rounds"],
      median(ours), median(processes), median(one), median(ours) / curl);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return 0;
}
