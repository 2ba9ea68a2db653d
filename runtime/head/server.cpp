#include "runtime/head/server.h"
