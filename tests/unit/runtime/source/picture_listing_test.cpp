// ImageFolders against an independent listing, and those of very many pictures.
#include "runtime/source/picture_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/process_usage.h"
#include "runtime/source/dataset.h"
#include "runtime/storage/open_store.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PrintOf(const PictureListing& listing) {
  Fingerprint print;
  listing.AddTo(&print);
  return print.ToHex();
}

std::vector<std::string> PathsOf(const PictureListing& listing) {
  std::vector<std::string> paths;
  for (const PictureClass& one : listing.classes) {
    for (const PictureFolder& folder : one.folders) {
      for (size_t i = 0; i < folder.names.size(); ++i) paths.push_back(folder.PathOf(i));
    }
  }
  return paths;
}

ShardSource StoreOf(const DatasetFolder& folder) {
  return {*storage::OpenStore("file://" + folder.path())};
}

// Byte by byte, as it was defined: FNV-1a, numbers in eight bytes, each text closed by its length.
class PlainFingerprint {
 public:
  void Add(const std::string& text) {
    for (const char c : text) Byte(static_cast<uint8_t>(c));
    Add(uint64_t{text.size()});
  }
  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) Byte(static_cast<uint8_t>(number >> shift));
  }
  std::string ToHex() const {
    uint64_t hash = hash_;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
  }

 private:
  void Byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

struct Expected {
  std::vector<std::string> paths;
  std::string fingerprint;
};

bool EndsAsPicture(const fs::path& path) {
  std::string ending = path.extension();
  std::transform(ending.begin(), ending.end(), ending.begin(), ::tolower);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// What OpenDataset() is to see, by std::filesystem.
Expected Look(const fs::path& root) {
  std::map<std::string, std::vector<std::tuple<std::string, std::string, uint64_t>>> classes;
  for (const auto& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename();
    if (!top.is_directory() || name.front() == '.' || name == "lost+found") continue;
    const auto options = fs::directory_options::follow_directory_symlink;
    for (const auto& entry : fs::recursive_directory_iterator(top.path(), options)) {
      if (entry.is_directory() || !EndsAsPicture(entry.path())) continue;
      classes[name].emplace_back(entry.path().parent_path().lexically_relative(root),
                                 entry.path().filename(), fs::file_size(entry.path()));
    }
  }
  Expected expected;
  PlainFingerprint print;
  print.Add("image folder");
  for (auto& [name, pictures] : classes) {
    std::sort(pictures.begin(), pictures.end());
    for (const auto& [folder, file, size] : pictures) {
      expected.paths.push_back(absl::StrCat(folder, "/", file));
      print.Add(folder);
      print.Add(file);
      print.Add(size);
    }
  }
  expected.fingerprint = print.ToHex();
  return expected;
}

// Names that sort otherwise by locale, by length or as signed bytes.
std::string RandomName(std::mt19937& random) {
  static constexpr const char* kParts[] = {"a", "B",        "-",    "_", ".", "10",
                                           "9", "\xc3\xa4", "\xff", "z", " ", "~"};
  std::string name = "n";
  for (size_t i = random() % 5; i > 0; --i) name += kParts[random() % std::size(kParts)];
  return name;
}

TEST(PictureListing, IsWhatTheFileSystemSays) {
  static constexpr const char* kEndings[] = {".jpg", ".JPEG", ".png", ".txt", "", ".jpg.tmp"};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const DatasetFolder folder, elsewhere;
    std::vector<std::string> folders;
    for (int i = 0; i < 4; ++i) {
      std::string path = absl::StrCat(RandomName(random), i);
      for (size_t depth = random() % 3 + 1; depth > 0; --depth) {
        folders.push_back(path);
        folder.Write(absl::StrCat(path, "/first.png"), std::string(random() % 300, 'x'));
        absl::StrAppend(&path, "/", RandomName(random));
      }
    }
    for (int i = 0; i < 150; ++i) {
      const std::string& in = folders[random() % folders.size()];
      const std::string name =
          absl::StrCat(in, "/", RandomName(random), i, kEndings[random() % std::size(kEndings)]);
      const std::string bytes(random() % 70000, 'x');
      if (random() % 8 != 0) {
        folder.Write(name, bytes);
      } else {
        fs::create_symlink(elsewhere.Write(absl::StrCat(i, "/0.jpg"), bytes), folder / name);
        fs::create_directory_symlink(elsewhere / absl::StrCat(i),
                                     folder / absl::StrCat(in, "/link", i));
      }
    }
    folder.Write("no_class.jpg", std::string_view("x"));
    folder.Write(".cache/x.jpg", std::string_view("x"));

    const Expected expected = Look(folder.path());
    const auto dataset = OpenDataset(folder.Source(), job::Split::kTrain, 0);
    ASSERT_TRUE(dataset.ok()) << dataset.status() << ", seed " << seed;
    ASSERT_EQ((*dataset)->size(), static_cast<int64_t>(expected.paths.size())) << "seed " << seed;
    for (int64_t id = 0; id < (*dataset)->size(); ++id) {
      const auto i = static_cast<size_t>(id);
      ASSERT_EQ((*dataset)->Describe(id), folder / expected.paths[i]) << "seed " << seed;
    }
    EXPECT_EQ((*dataset)->fingerprint(), expected.fingerprint) << "seed " << seed;
  }
}

TEST(PictureListing, OfManyTheSizesOfSomeAreLookedAt) {
  EXPECT_EQ(SizeRule().Step(1'281'167), 1) << "ImageNet";
  EXPECT_EQ(SizeRule().Step(2'000'000), 1);
  EXPECT_EQ(SizeRule().Step(2'000'001), 122);
  EXPECT_EQ(SizeRule().Step(10'000'000), 610);

  const DatasetFolder folder;
  for (int i = 0; i < 23; ++i) {
    folder.Write(absl::StrCat("class", i % 3, "/", 10 + i, ".jpg"), std::string(i + 1, 'x'));
  }
  const SizeRule rule = {.of_all_up_to = 22, .of_more = 6};  // every third
  const auto some = ListPictures(folder.path(), true, rule);
  const auto all = ListPictures(folder.path(), true, {.of_all_up_to = 23});
  ASSERT_TRUE(some.ok() && all.ok()) << some.status() << all.status();
  EXPECT_EQ(some->size_step, 3);
  // By class: 10, 13, ... 31; 11, 14, ... 32; 12, 15, ... 30.
  EXPECT_THAT(some->sizes, ElementsAre(1, 10, 19, 5, 14, 23, 9, 18));
  EXPECT_EQ(all->sizes.size(), 23u);
  EXPECT_EQ(PathsOf(*some), PathsOf(*all));
  for (const SizeRule& each : {rule, SizeRule{}}) {
    for (const bool by_class : {true, false}) {
      EXPECT_EQ(PrintOf(*ListPictures(StoreOf(folder), by_class, each)),
                PrintOf(*ListPictures(folder.path(), by_class, each)));
    }
  }

  folder.Write("class0/13.jpg", std::string_view("another one"));
  EXPECT_EQ(PrintOf(*ListPictures(folder.path(), true, rule)), PrintOf(*some));
  folder.Write("class0/19.jpg", std::string_view("it is looked at"));
  EXPECT_NE(PrintOf(*ListPictures(folder.path(), true, rule)), PrintOf(*some));
}

// After the first folders there seem to be more than there are.
TEST(PictureListing, AllSizesAreLookedAtWhereFoldersGrowEmpty) {
  const DatasetFolder folder;
  for (int i = 0; i < 400; ++i) {
    folder.MakeFolder(absl::StrCat("cat/", 1000 + i));
    for (int picture = 0; i < 100 && picture < 4; ++picture) {
      folder.Write(absl::StrCat("cat/", 1000 + i, "/", picture, ".png"), std::string(i + 1, 'x'));
    }
  }
  folder.Write("cat/z/0.png", std::string(5000, 'x'));
  const SizeRule rule = {.of_all_up_to = 401, .of_more = 1};
  const auto listing = ListPictures(folder.path(), true, rule);
  ASSERT_TRUE(listing.ok()) << listing.status();
  ASSERT_EQ(listing->sizes.size(), 401u);
  EXPECT_EQ(listing->sizes.front(), 1u);
  EXPECT_EQ(listing->sizes[399], 100u);
  EXPECT_EQ(listing->sizes.back(), 5000u);
  EXPECT_EQ(PrintOf(*listing), PrintOf(*ListPictures(StoreOf(folder), true, rule)));
}

TEST(PictureListing, APictureThatIsNoFileIsNamed) {
  const DatasetFolder folder;
  folder.Write("dog/0.jpg", std::string_view("x"));
  ASSERT_EQ(mkfifo((folder / "dog/notes").c_str(), 0600), 0);
  ASSERT_TRUE(ListPictures(folder.path(), true).ok()) << "no picture, so nobody minds";
  ASSERT_EQ(mkfifo((folder / "dog/1.jpg").c_str(), 0600), 0);
  for (const SizeRule& rule : {SizeRule{}, SizeRule{.of_all_up_to = 0, .of_more = 1}}) {
    EXPECT_EQ(ListPictures(folder.path(), true, rule).status().message(),
              folder / "dog/1.jpg" +
                  ": has a picture's name, but is no file; move it out of the folder or rename it");
  }
}

TEST(PictureListing, AFolderThatCannotBeReadIsNamed) {
  const DatasetFolder folder;
  folder.Write("cat/0.jpg", std::string_view("x"));
  EXPECT_EQ(ListPictures(folder / "dog", true).status().message(),
            folder / "dog" + ": cannot list: No such file or directory");
  if (geteuid() == 0) return;  // who may read everything
  folder.Write("cat/a/0.jpg", std::string_view("x"));
  folder.Write("dog/b/0.jpg", std::string_view("x"));
  for (const char* closed : {"dog/b", "cat/a"}) {
    fs::permissions(folder / closed, fs::perms::none);
    EXPECT_EQ(ListPictures(folder.path(), true).status().message(),
              folder / closed + ": cannot list: Permission denied")
        << "the first by name";
  }
  for (const char* closed : {"dog/b", "cat/a"}) {
    fs::permissions(folder / closed, fs::perms::owner_all);
  }
}

// Links that go round are what even root cannot follow. A class that is passed over without a word
// moves all labels after it.
TEST(PictureListing, AClassOrFolderThatCannotBeFollowedIsNamed) {
  const DatasetFolder folder;
  folder.Write("cat/0.jpg", std::string_view("x"));
  folder.Write("dog/0.jpg", std::string_view("x"));
  fs::create_symlink("nowhere", folder / "bird");
  fs::create_symlink("0.jpg/below", folder / "dog/more");
  const auto listing = ListPictures(folder.path(), true);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->ignored, 2) << "links that lead nowhere";
  fs::create_symlink("cow", folder / "cow");
  EXPECT_THAT(std::string(ListPictures(folder.path(), true).status().message()),
              HasSubstr(folder / "cow" + ": is by a link in itself"));
  fs::remove(folder / "cow");
  fs::create_symlink("round", folder / "dog/round");
  EXPECT_THAT(std::string(ListPictures(folder.path(), true).status().message()),
              HasSubstr(folder / "dog/round" + ": is by a link in itself"));
}

// With two such links a folder had four more below it after two levels, and 2^40 after forty, where
// the system refuses.
TEST(PictureListing, AWayThatLeadsBackIsAnErrorAtOnce) {
  const std::string kBack =
      ": is by a link in itself (too many levels of symbolic links); remove the link";
  const DatasetFolder all;
  const std::string root = all / "root", elsewhere = all / "elsewhere";
  all.Write("root/cat/0.jpg", std::string_view("x"));
  all.Write("root/dog/0.jpg", std::string_view("x"));
  all.Write("elsewhere/a/0.jpg", std::string_view("x"));
  // Twice the same folder is no circle.
  fs::create_directory_symlink(elsewhere, root + "/cat/set");
  fs::create_directory_symlink("../cat", root + "/dog/cat");
  const auto twice = ListPictures(root, true);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_THAT(PathsOf(*twice), ElementsAre("cat/0.jpg", "cat/set/a/0.jpg", "dog/0.jpg",
                                           "dog/cat/0.jpg", "dog/cat/set/a/0.jpg"));

  fs::create_directory_symlink("..", root + "/dog/up");
  fs::create_directory_symlink(root, root + "/dog/again");
  EXPECT_EQ(ListPictures(root, true).status().message(), root + "/dog/again" + kBack);
  fs::remove(root + "/dog/up");
  fs::remove(root + "/dog/again");
  // To a folder that is not on the way, but has all of it below it.
  fs::create_directory_symlink(all.path(), elsewhere + "/above");
  EXPECT_EQ(ListPictures(root, true).status().message(), root + "/cat/set/above/elsewhere" + kBack);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOwnAllocator = true;
#else
constexpr bool kOwnAllocator = false;
#endif
#else
constexpr bool kOwnAllocator = false;
#endif

// By links: 1,000 classes, each of them the same folder.
TEST(PictureListing, AMillionPicturesTakeLittleMoreThanTheirNames) {
  if (kOwnAllocator) GTEST_SKIP() << "the sanitizer's memory is not the program's";
  const DatasetFolder folder, elsewhere;
  for (int i = 0; i < 1000; ++i) {
    elsewhere.Write(absl::StrCat("n01440764_", 10000 + i, ".JPEG"), std::string_view("x"));
  }
  for (int i = 0; i < 1000; ++i) {
    fs::create_directory_symlink(elsewhere.path(), folder / absl::StrCat("n", 10'000'000 + i));
  }
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the peak begins anew
  const int64_t before = base::ReadProcessUsage().resident_bytes;
  const auto dataset = OpenDataset(folder.Source(), job::Split::kTrain, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ((*dataset)->size(), 1'000'000);
  const int64_t peak = base::ReadProcessUsage().peak_resident_bytes - before;
  EXPECT_LT(peak, 60 * (*dataset)->size()) << "bytes, at most, while it was opened";
}

}  // namespace
}  // namespace hetero::source
