#pragma once

namespace hetero::process {

// Has the kernel kill this process when its parent dies, so that a killed launcher leaves nothing
// behind. Does nothing unless HETERO_PARENT_PID is set; exits at once when that parent is already
// gone.
void DieWithParent();

}  // namespace hetero::process
