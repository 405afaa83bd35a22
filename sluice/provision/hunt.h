// Creates a slice in one zone, or tries zones until one has capacity.
#pragma once

#include <map>
#include <set>

#include "sluice/provision/slices.h"

namespace sluice::provision {

// Threads: one at a time. Used once.
class Hunt {
 public:
  // `wish` is complete and checked; `zones` are the zones to try.
  Hunt(Cloud& cloud, SliceWish wish, estimate::TpuSlice type, std::vector<std::string> zones);
  google::Outcome<Slice> run();

 private:
  // Looks for slices of this name: adopts a live one, removes a dead one, refuses somebody else's.
  google::Outcome<std::optional<Slice>> existing();
  google::Outcome<Slice> round();
  google::Outcome<Slice> attempt(const std::string& zone);
  google::Outcome<google::Operation> ask(const std::string& zone);
  // A request that was sent in one zone.
  struct Watched {
    std::string zone;
    std::optional<google::Operation> operation;  // while it is in progress
    double since;
    std::optional<google::Failure> late;  // the operation's error, which does not decide yet
    double late_since;
  };
  google::Outcome<Slice> watch(const std::string& zone, std::optional<google::Operation> operation);
  google::Outcome<std::optional<Slice>> judge(const Watched& watched, const std::optional<Slice>& slice);
  google::Done look_at_operation(Watched& watched);
  tl::unexpected<google::Failure> drop(const Slice& slice, const google::Failure& why);
  // Returns the slice of this name in the zone, as it is now.
  google::Outcome<std::optional<Slice>> look(const std::string& zone);
  base::Status ours(const Slice& slice) const;
  bool waited_enough(const Slice& slice, double since) const;
  void give_up(const std::string& zone, const google::Failure& failure);
  bool blocked(const std::string& zone) const;
  google::Failure none_left() const;
  // Adds the zones that have the type to the failure's text.
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
