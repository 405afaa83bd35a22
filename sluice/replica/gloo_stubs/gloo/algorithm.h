// LibTorch's packages contain Gloo but not its headers. These declare as much as c10d's ProcessGroupGloo.hpp
// names; nothing here is called, made or derived from by Sluice, so no layout matters.
#pragma once
