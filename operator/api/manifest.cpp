#include "operator/api/manifest.h"
