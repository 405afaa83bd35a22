// See gloo/algorithm.h.
#pragma once
