// sluice task
#include "sluice/cli/verbs.h"
