// Making a slice in one zone, and going through zones until one has it.
#pragma once

#include <map>
#include <set>

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Threads: one at a time. Used once.
class Hunt {
 public:
  // `wish` is complete and checked; `zones` are those to try.
  Hunt(Cloud& cloud, SliceWish wish, estimate::TpuSlice type, std::vector<std::string> zones);
  google::Outcome<Slice> run();

 private:
  // What is there of this name already: adopted when it lives, removed when it is dead, refused when it is
  // somebody else's.
  google::Outcome<std::optional<Slice>> existing();
  google::Outcome<Slice> round();
  google::Outcome<Slice> attempt(const std::string& zone);
  google::Outcome<google::Operation> ask(const std::string& zone);
  // What was asked for in one zone.
  struct Watched {
    std::string zone;
    std::optional<google::Operation> operation;  // while it is under way
    double since;
    std::optional<google::Failure> late;  // the operation's error, which is not the last word
    double late_since;
  };
  google::Outcome<Slice> watch(const std::string& zone, std::optional<google::Operation> operation);
  google::Outcome<std::optional<Slice>> judge(const Watched& watched, const std::optional<Slice>& slice);
  google::Done look_at_operation(Watched& watched);
  tl::unexpected<google::Failure> drop(const Slice& slice, const google::Failure& why);
  // What the zone has of this name now.
  google::Outcome<std::optional<Slice>> look(const std::string& zone);
  base::Status ours(const Slice& slice) const;
  bool waited_enough(const Slice& slice, double since) const;
  void give_up(const std::string& zone, const google::Failure& failure);
  bool blocked(const std::string& zone) const;
  google::Failure none_left() const;
  // With the zones that have the type.
  google::Failure with_zones(const google::Failure& failure);

  Cloud& cloud_;
  const SliceWish wish_;
  const estimate::TpuSlice type_;
  const std::vector<std::string> zones_;
  std::set<std::string> unreachable_, blocked_;      // blocked: zones and regions not to try again
  std::map<std::string, google::Failure> failures_;  // the last of each zone
  bool server_deadline_;
};

}  // namespace sluice::provision
