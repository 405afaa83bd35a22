// Imports tokens from sets of MosaicML's Streaming.
#pragma once

#include "sluice/text/tools/pack.h"
#include "sluice/text/tools/set_writer.h"

namespace sluice::text {

// Adds the documents of the sets options.files, from where the writer's previous run ended.
base::Status import_mds(const TokenImportOptions& options, SetWriter& writer);

}  // namespace sluice::text
