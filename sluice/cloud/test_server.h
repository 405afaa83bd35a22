// An HTTP server for tests, on a loopback port of its own: a function makes its answers, also wrong ones.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sluice::cloud::test {

struct Request {
  std::string method, path, query;                  // the path with its percent signs
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  // Returns the value of a query parameter, percent-decoded; "" if it is missing.
  std::string parameter(const std::string& name) const;
};

struct Reply {
  int status = 200;
  std::vector<std::string> headers = {};
  std::string body = {};
  std::optional<std::size_t> cut_after =
      std::nullopt;    // the connection is reset after this number of body bytes
  bool stall = false;  // after cut_after bytes nothing more is sent, but the connection stays open
  std::optional<std::size_t> declared = std::nullopt;  // a false Content-Length
  bool without_length = false;                         // the end of the connection is the end of the body
};

// Threads: the handler is called from many at once.
class Server {
 public:
  using Handler = std::function<Reply(const Request&)>;
  explicit Server(Handler handler);
  ~Server();

  std::string address() const;                      // "http://127.0.0.1:PORT"
  int connections() const { return connections_; }  // accepted so far
  int requests() const { return requests_; }

 private:
  void accept_all();
  void serve(int connection);
  bool answer(int connection, const Request& request);

  const Handler handler_;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0}, requests_{0};
  std::mutex mutex_;
  std::set<int> open_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

// Makes the process use the server as Cloud Storage, with short retries. Once, before the first access.
bool stand_for_cloud(const Server& server);

// The part of Cloud Storage that this room uses, in memory: stat, list (two objects a page), ranged reads
// pinned to a generation, resumable uploads, rewriting, deleting.
class Bucket {
 public:
  struct Object {
    std::string bytes;
    std::int64_t generation = 1;
    std::optional<std::uint32_t> crc32c = std::nullopt;  // a false crc32c
  };

  Reply operator()(const Request& request);

  void put(const std::string& name, std::string bytes);
  std::optional<Object> get(const std::string& name) const;
  std::vector<std::string> names() const;
  void lie_about_crc(const std::string& name, std::uint32_t crc);
  // Falsifies the crc32c of objects that are uploaded from now on.
  void damage_uploads() { damage_ = true; }

 private:
  Reply compose(const std::string& target, const Request& request);
  Reply describe(const std::string& name) const;
  Reply media(const std::string& name, const Request& request) const;
  Reply list(const Request& request) const;
  Reply upload(const Request& request);

  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_;
  struct Session {
    std::string name, bytes;
  };
  std::map<std::string, Session> sessions_;
  std::int64_t next_ = 1000;
  std::atomic<bool> damage_{false};
};

}  // namespace sluice::cloud::test
