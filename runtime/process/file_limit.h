#pragma once

namespace hetero::process {

// As many open files as the system lets this process have. Connections that somebody opens and
// leaves half-way hold one each until their handshake times out. Call early in main().
void RaiseFileLimit();

}  // namespace hetero::process
