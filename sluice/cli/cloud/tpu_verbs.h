// The verbs of the noun `tpu` that only speak with Google's services.
#pragma once

#include "sluice/cli/verb.h"

namespace sluice::cli {

Verb tpu_create_verb();

}  // namespace sluice::cli
