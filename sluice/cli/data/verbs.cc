#include "sluice/cli/verbs.h"
#include "sluice/cli/data/common.h"

namespace sluice::cli {

Verb data_verb() {
  return {.name = "data",
          .help = "Make, list and check WebDataset shards",
          .verbs = {pack_verb(), append_verb(), update_verb(), digits_verb(), cifar10_verb(), idx_verb(),
                    mds_verb(), ls_verb(), verify_verb(), cat_verb(), index_verb(), stats_verb(), cp_verb()}};
}

}  // namespace sluice::cli
