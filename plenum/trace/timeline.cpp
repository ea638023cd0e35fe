#include "plenum/trace/timeline.h"
