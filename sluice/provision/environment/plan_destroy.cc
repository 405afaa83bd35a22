#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/provision/environment/plan.h"

namespace sluice::provision {
namespace {

using base::str;

// Returns why destroy leaves a piece, or "".
std::string stays_because(const Piece& piece, const PlanOptions& options) {
  if (!options.only.empty() && !among(options.only, piece.part)) return "not named in --only";
  // The machine that fills the disk is never kept: it costs money, and apply re-creates it.
  if (piece.part != Part::kPrepare && among(options.keep, piece.part)) return "named in --keep";
  const bool named = among(options.only, Part::kBucket);
  if (piece.part == Part::kBucket && piece.state == "HOLDS_DATA" && !named)
    return "it holds data: destroy --only bucket deletes it with all that is in it";
  return "";
}

}  // namespace

Plan plan_destroy(const std::string& environment, const std::string& owner, const Survey& survey,
                  const PlanOptions& options) {
  Plan plan;
  plan.mark.environment = environment;
  std::vector<Piece> pieces = survey.of(environment);
  std::reverse(pieces.begin(), pieces.end());
  plan.hourly = 0;
  bool inside_stays = false, user_stays = false;  // resources in the network, users of the disk
  for (const Piece& piece : pieces) {
    std::string why = stays_because(piece, options);
    if (!owner.empty() && !piece.mark->owner.empty() && piece.mark->owner != owner && plan.problems.empty())
      plan.problems.push_back(str("the environment '", environment, "' is ", piece.mark->owner,
                                  "'s, and you are ", owner, ": set env.owner (or --owner) if it is yours"));
    if (why.empty() && piece.part == Part::kNetwork && inside_stays) why = "what stays is in it";
    if (why.empty() && piece.part == Part::kFirewall && inside_stays) why = "it protects what stays";
    if (why.empty() && piece.part == Part::kDisk && user_stays)
      plan.problems.push_back(
          str("the disk ", piece.name, " cannot go while machines or the TPU use it: name these too"));
    plan.steps.push_back({why.empty() ? Act::kDelete : Act::kKeep, piece.part, piece.name, piece.zone, why,
                          piece.hourly, 0, piece});
    if (why.empty()) continue;
    const bool inside = piece.part == Part::kNfs || piece.part == Part::kPrepare ||
                        piece.part == Part::kMachine || piece.part == Part::kTpu;
    inside_stays = inside_stays || inside;
    user_stays = user_stays || piece.part == Part::kMachine || piece.part == Part::kTpu;
    if (plan.hourly && piece.hourly) *plan.hourly += *piece.hourly;
  }
  return plan;
}

}  // namespace sluice::provision
