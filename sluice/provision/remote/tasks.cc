#include "sluice/provision/remote/tasks.h"
#include "sluice/base/text/join.h"

#include <algorithm>

#include "sluice/base/text/strings.h"

namespace sluice::provision {
namespace {

constexpr char kUpdate[] =
    "for repository in */.git; do [ ! -e \"$repository\" ] || git -C \"${repository%/.git}\" pull --ff-only "
    "|| exit; "
    "done";

bool is_last(const std::string& name) { return name == "last" || name.ends_with("/last"); }
bool is_checkpoint(const std::string& name) {
  return name.find("checkpoint") != std::string::npos || name.find("ckpt") != std::string::npos;
}

// Generations are times: a longer number is later, or a larger one of the same length.
bool is_earlier(const cloud::ObjectFacts& a, const cloud::ObjectFacts& b) {
  return a.generation.size() != b.generation.size() ? a.generation.size() < b.generation.size()
                                                    : a.generation < b.generation;
}

}  // namespace

base::Result<std::string> task_line(const std::map<std::string, std::string>& tasks,
                                    const std::string& name) {
  const std::vector<std::string> names = {"install", "test", "update", "run", "resume"};
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = base::nearest(name, names);
    return base::fail(Code::kInvalidArgument, "there is no task ", name, ": they are ",
                      base::join(names, ", "),
                      near.empty() ? std::string() : base::str("; did you mean ", near, "?"));
  }
  auto line = tasks.find(name);
  if (line == tasks.end() && name == "update") return std::string(kUpdate);
  if (line == tasks.end() && name == "resume") line = tasks.find("run");
  if (line == tasks.end())
    return base::fail(Code::kNotFound, "the environment has no task ", name, ": add `", name,
                      " = \"COMMAND\"` to its section [tasks]");
  return line->second;
}

std::string latest_checkpoint(const std::string& bucket, const std::vector<cloud::ObjectFacts>& objects) {
  for (const auto& fits : {is_last, is_checkpoint}) {
    const cloud::ObjectFacts* latest = nullptr;
    for (const cloud::ObjectFacts& object : objects)
      if (fits(object.name) && (latest == nullptr || is_earlier(*latest, object))) latest = &object;
    if (latest == nullptr) continue;
    const size_t slash = latest->name.rfind('/');
    return slash == std::string::npos ? base::str("gs://", bucket)
                                      : base::str("gs://", bucket, '/', latest->name.substr(0, slash));
  }
  return "";
}

}  // namespace sluice::provision
