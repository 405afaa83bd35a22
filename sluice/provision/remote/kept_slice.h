// The slice and the run that `sluice keep` acts on: a slice of the cloud, and `sluice run` as a process of
// its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/process.h"
#include "sluice/pod/signals.h"
#include "sluice/provision/remote/keeper.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

// Returns the wish that re-creates a slice like this one from what the cloud reports: type, runtime,
// capacity, network, service account, labels, metadata, disks, its mark. For a group, requests its template.
google::Outcome<SliceWish> wish_of(Cloud& cloud, const Slice& slice);

// Converts a wish to JSON and back: `sluice keep` records it while it re-creates a slice, so that it can
// resume if it is killed in between. If the cloud still has the slice, the cloud's data count.
std::string text_of_wish(const SliceWish& wish);
base::Result<SliceWish> wish_of_text(const std::string& text);

struct KeptSliceOptions {
  std::string name, zone;          // zone "": searched in all
  std::vector<std::string> zones;  // where it may be re-created; empty: where it was
  std::optional<SliceWish> wish;   // for creating it if it does not exist and never did
  int min_slices = 0;              // KeepLimits::min_slices
  bool needs_price = false;        // costs are limited: a slice without a list price is refused
  double capacity_seconds = 600;   // how long one search for capacity lasts before keep reports it
  double notice_seconds = 300;     // before maintenance
  // The program and "run"; `arguments` are the user's words after it.
  std::vector<std::string> command, arguments;
};

// The state that a keep starts from.
struct KeptStart {
  std::optional<Slice> slice;     // listed by the cloud; nothing: none, or the cloud was not asked
  std::optional<SliceWish> wish;  // for (re-)creating it; nothing: the cloud was not asked, and it is unknown
  bool is_recorded = false;       // an earlier keep recorded the wish
};
// Only reads. `asks`: false if the cloud cannot be asked; the wish then comes from the options or an earlier
// keep. kNotFound: no slice of that name, none recorded, and no wish; kInvalidArgument: a price is needed
// but not known, or min_slices is above the number of slices.
base::Result<KeptStart> find_start(Cloud& cloud, const KeptSliceOptions& options, bool asks = true);
// Returns the slice's state as its nodes and its queue entry report it.
SliceView view_of(const Slice& slice, double now, double notice_seconds);
// Returns the command that starts the run in this zone; restart is 0 for the first start. `slices`: those
// that it uses of several; empty: all.
std::vector<std::string> run_command(const KeptSliceOptions& options, const std::string& zone,
                                     const std::string& project, int restart,
                                     const std::vector<int>& slices = {});

class KeptSlice : public KeptRun {
 public:
  // Errors: find_start()'s, and a record that cannot be written.
  static base::Result<std::unique_ptr<KeptSlice>> open(Cloud cloud, KeptSliceOptions options);
  ~KeptSlice() override;

  base::Result<SliceView> look() override;
  base::Status remove_slice() override;
  base::Status create_slice() override;
  void use_slices(const std::vector<int>& numbers) override { used_ = numbers; }
  base::Status start_run(int restart) override;
  std::optional<int> run_status() override;
  void stop_run() override;
  void kill_run() override;
  std::string delete_command() override;
  double dollars() override { return dollars_; }
  int signal() override;
  double now() override;
  void sleep(double seconds) override;
  void say(const std::string& text) override { cloud_.say(text); }

 private:
  KeptSlice(Cloud cloud, KeptSliceOptions options, SliceWish wish);
  base::Status record() const;
  void follow_end(const Slice& slice);
  void count_cost(int slices);

  Cloud cloud_;
  const KeptSliceOptions options_;
  SliceWish wish_;
  std::string zone_;  // where the slice is now
  std::optional<base::Process> run_;
  std::atomic<bool> cancelled_{false};
  pod::Signals signals_{false};
  double dollars_ = 0, counted_until_ = 0;
  int charged_ = 0;        // the slices that have cost money since counted_until_
  std::vector<int> used_;  // the slices of the next run; empty: all
};

}  // namespace sluice::provision
