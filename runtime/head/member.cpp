#include "runtime/head/member.h"
