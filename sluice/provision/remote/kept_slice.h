// What `sluice keep` acts on: a slice of the cloud, and `sluice run` as a process of its own.
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

// The wish that makes a slice like this one again, with what the cloud says of it: type, runtime, capacity,
// network, service account, labels, metadata, disks, its mark. Asks for a group's template.
google::Outcome<SliceWish> wish_of(Cloud& cloud, const Slice& slice);

// The same as JSON and back: what `sluice keep` leaves behind while it deletes and makes a slice, so that it
// goes on if it is killed in between. The cloud counts wherever it still has the slice.
std::string text_of_wish(const SliceWish& wish);
base::Result<SliceWish> wish_of_text(const std::string& text);

struct KeptSliceOptions {
  std::string name, zone;          // zone "": found in any
  std::vector<std::string> zones;  // in which it may be made again; empty: where it was
  std::optional<SliceWish> wish;   // to make it where it is not there and never was
  bool needs_price = false;        // costs are limited: what has no list price is refused
  double capacity_seconds = 600;   // that one hunt goes on before it is told of
  double notice_seconds = 300;     // before maintenance
  // The program and "run", and what follows in the user's words.
  std::vector<std::string> command, arguments;
};

// What a keep begins with.
struct KeptStart {
  std::optional<Slice> slice;  // that the cloud lists; nothing: none, or nobody was asked
  std::optional<SliceWish>
      wish;                  // what it is made (again) of; nothing: nobody was asked, and it is not known
  bool is_recorded = false;  // the wish is what an earlier keep has left behind
};
// Only reads. `asks`: false where the cloud cannot be asked; the wish is then what the options or an earlier
// keep say. kNotFound: no slice of that name, none recorded, and no wish; kInvalidArgument: a price is
// needed, and there is none.
base::Result<KeptStart> find_start(Cloud& cloud, const KeptSliceOptions& options, bool asks = true);
// What the node and the queue's entry say of the slice's state.
SliceView view_of(const Slice& slice, double now, double notice_seconds);
// The line that starts the run in this zone: for the first time with restart 0.
std::vector<std::string> run_command(const KeptSliceOptions& options, const std::string& zone,
                                     const std::string& project, int restart);

class KeptSlice : public KeptRun {
 public:
  // Errors as of find_start(), and where the record cannot be written.
  static base::Result<std::unique_ptr<KeptSlice>> open(Cloud cloud, KeptSliceOptions options);
  ~KeptSlice() override;

  base::Result<SliceView> look() override;
  base::Status remove_slice() override;
  base::Status create_slice() override;
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
  void count_cost(bool is_up);

  Cloud cloud_;
  const KeptSliceOptions options_;
  SliceWish wish_;
  std::string zone_;  // where the slice is now
  std::optional<base::Process> run_;
  std::atomic<bool> cancelled_{false};
  pod::Signals signals_{false};
  double dollars_ = 0, counted_until_ = 0;
  bool was_up_ = false;
};

}  // namespace sluice::provision
