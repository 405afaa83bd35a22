// LibTorch's packages contain Gloo but not its headers. These declare as much as c10d's ProcessGroupGloo.hpp
// names, and the one function that Sluice calls; nothing here is made or derived from, so no layout matters.
#pragma once
