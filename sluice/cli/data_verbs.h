// The verbs `sluice data …`.
#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

// Adds the noun `data` with its verbs to the program. A verb that runs sets `exit_status` to 0 (done) or 1
// (failed, with its message on stderr); wrong usage stays CLI11's to report. `exit_status` must outlive the
// parsing.
void add_data_verbs(CLI::App& app, int& exit_status);

}  // namespace sluice::cli
