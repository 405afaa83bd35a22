// The calls that this room handles, one row each. Internal to this room.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sluice/kernels/call.h"
#include "sluice/pjrt/plugin.h"

namespace sluice::kernels {

struct Row {
  std::string_view target;  // in the program's text
  base::Status (*handler)(const Call& call);
  std::array<Attribute, 6> attributes = {};  // an unused entry has no name
};

std::span<const Row> registry();

// Runs the row's handler, with the threads of the plugin.
base::Status answer(const Row& row, const pjrt::CustomCall& call);

// Registers all rows with the plugin.
base::Status register_all(const pjrt::Plugin& plugin);

}  // namespace sluice::kernels
