#pragma once

#include <string>
#include <vector>

// What a cluster shows of jobs, searched for the keys of the tests' S3 server (s3_server.h).
namespace hetero::testing {

// Every object that the namespace has now but its Secrets, as JSON.
std::string ObjectsWithoutSecrets(const std::string& name_space);

// Where one of those keys, a signature's key or one of `tokens` stands in the folder's files, in
// any of the forms that tests/integration/storage/without_secrets knows: a line for each, with
// file, offset and form. A folder without files fails the test.
std::vector<std::string> FindSecrets(const std::string& folder,
                                     const std::vector<std::string>& tokens = {});

}  // namespace hetero::testing
