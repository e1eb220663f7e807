// Reading tensors from safetensors files (github.com/huggingface/safetensors), which are taken as hostile until checked.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/io/file_system.hpp>
#include <gyre/io/safetensors_header.hpp>

GYRE_BEGIN

/// A safetensors file, or the bytes of one. The constructor reads and checks the header; no number in it is trusted before.
/// Tensors are then read one by one, from any number of threads, with no memory beyond the caller's.
///
/// Every file that the official package writes is read. Refused although that package lets them pass: white space before the
/// header's brace (the format wants '{' first), duplicate names and metadata keys, null bytes in either, unknown fields, a
/// tensor given as an array instead of an object, `__metadata__` that is null, dimensions of 2^63 and more.
class safetensors_reader {
 public:
  /// `files` must outlive the reader.
  explicit safetensors_reader(const std::filesystem::path& path, const file_system& files = system_files)
      : source_(path.string()), files_(&files) {
    file_ = detail::open_file(source_, O_RDONLY | O_NONBLOCK, files);  // a pipe must not make us wait
    if (!file_) fail("safetensors: cannot open ", source_, ": ", detail::errno_text());
    struct stat what {};
    if (files.fstat(file_.get(), &what) != 0) fail("safetensors: cannot examine ", source_, ": ", detail::errno_text());
    require(S_ISREG(what.st_mode), "safetensors: ", source_, " is not a regular file");
    load(static_cast<std::uint64_t>(what.st_size));
  }

  /// Reads from memory, which must outlive the reader; `source` names it in errors.
  safetensors_reader(std::span<const std::byte> bytes, std::string source) : source_(std::move(source)), memory_(bytes) {
    load(bytes.size());
  }

  const std::string& source() const { return source_; }
  /// All tensors, in the order of their data.
  const std::vector<stored_tensor>& tensors() const { return header_.tensors; }
  /// Keys and values of `__metadata__`, sorted by key.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return header_.metadata; }

  /// The tensor of that name, or null.
  const stored_tensor* find(std::string_view name) const {
    const auto before = [&](std::size_t i, std::string_view wanted) { return header_.tensors[i].name < wanted; };
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name, before);
    return at != by_name_.end() && header_.tensors[*at].name == name ? &header_.tensors[*at] : nullptr;
  }
  /// The tensor of that name; throws when there is none.
  const stored_tensor& at(std::string_view name) const {
    const stored_tensor* found = find(name);
    if (found == nullptr)
      fail(source_, ": there is no tensor ", detail::in_quotes(name), " among the file's ", header_.tensors.size());
    return *found;
  }

  /// The tensor's bytes as they are in the file: into.size() must be end - begin.
  void read_bytes(const stored_tensor& tensor, std::span<std::byte> into) const {
    if (into.size() != tensor.end - tensor.begin)
      fail(source_, ": tensor ", detail::in_quotes(tensor.name), " has ", tensor.end - tensor.begin, " bytes, the buffer ",
           into.size());
    fetch(data_begin_ + tensor.begin, into);
  }

  /// Reads a tensor of exactly this type and shape, bit for bit. Throws one error that names the file, the tensor, what was
  /// expected and what was found.
  template <class T>
  requires requires { dtype_of<T>(); }
  void read(std::string_view name, std::span<const index> shape, std::span<T> into) const {
    const stored_tensor& tensor = at(name);
    if (tensor.type != dtype_of<T>() || !std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end()))
      mismatch(tensor, detail::shape_text(dtype_of<T>(), shape));
    read_bytes(tensor, std::as_writable_bytes(into));
  }
  template <class T>
  void read(std::string_view name, std::initializer_list<index> shape, std::span<T> into) const {
    read<T>(name, std::span(shape.begin(), shape.size()), into);
  }

  /// Reads a tensor of this shape whose elements are F16, BF16, F32 or F64 as float or double. F64 to float rounds, the others
  /// are exact.
  template <std::floating_point T>
  void read_converted(std::string_view name, std::span<const index> shape, std::span<T> into) const {
    const stored_tensor& tensor = at(name);
    if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end()))
      mismatch(tensor, "real numbers " + detail::shape_text(dtype_of<T>(), shape).substr(4));
    if (into.size() != static_cast<std::size_t>(tensor.count()))
      fail(source_, ": tensor ", detail::in_quotes(tensor.name), " has ", tensor.count(), " elements, the buffer ",
           into.size());
    switch (tensor.type) {
      case dtype::f16:
        return convert<std::uint16_t>(tensor, into, [](std::uint16_t x) { return float_from_f16(x); });
      case dtype::bf16:
        return convert<std::uint16_t>(tensor, into, [](std::uint16_t x) { return float_from_bf16(x); });
      case dtype::f32:
        return convert<float>(tensor, into, [](float x) { return x; });
      case dtype::f64:
        return convert<double>(tensor, into, [](double x) { return x; });
      default:
        mismatch(tensor, "F16, BF16, F32 or F64");
    }
  }
  template <std::floating_point T>
  void read_converted(std::string_view name, std::initializer_list<index> shape, std::span<T> into) const {
    read_converted<T>(name, std::span(shape.begin(), shape.size()), into);
  }

 private:
  void load(std::uint64_t file_bytes) {
    std::array<std::byte, 8> first{};
    const std::span<std::byte> head(first.data(), static_cast<std::size_t>((std::min)(file_bytes, std::uint64_t{8})));
    fetch(0, head);
    const std::uint64_t bytes = safetensors_header_bytes(head, file_bytes, source_);
    data_begin_ = 8 + bytes;
    std::string text(static_cast<std::size_t>(bytes), '\0');
    fetch(8, std::as_writable_bytes(std::span(text)));
    header_ = parse_safetensors_header(text, file_bytes - data_begin_, source_);
    by_name_.resize(header_.tensors.size());
    for (std::size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::size_t a, std::size_t b) { return header_.tensors[a].name < header_.tensors[b].name; });
  }

  [[noreturn]] void mismatch(const stored_tensor& tensor, const std::string& expected) const {
    fail(source_, ": tensor ", detail::in_quotes(tensor.name), ": expected ", expected, ", found ",
         detail::shape_text(tensor.type, tensor.shape));
  }

  /// Bytes from a place in the file on; the header has been checked, so that only a file changed meanwhile is too short.
  void fetch(std::uint64_t from, std::span<std::byte> into) const {
    if (!file_) {
      if (!into.empty()) std::memcpy(into.data(), memory_.data() + from, into.size());
      return;
    }
    std::size_t done = 0;
    while (done < into.size()) {
      const off_t place = static_cast<off_t>(from + done);
      const ssize_t got =
          detail::uninterrupted([&] { return files_->pread(file_.get(), into.data() + done, into.size() - done, place); });
      if (got < 0) fail("safetensors: cannot read ", source_, " at byte ", from + done, ": ", detail::errno_text());
      require(got > 0, "safetensors: ", source_, " ended at byte ", from + done, " while it was read; it has been shortened");
      done += static_cast<std::size_t>(got);
    }
  }

  template <class Stored, class T, class Convert>
  void convert(const stored_tensor& tensor, std::span<T> into, Convert&& one) const {
    std::array<Stored, 2048> block;
    for (std::size_t done = 0; done < into.size();) {
      const std::size_t count = (std::min)(block.size(), into.size() - done);
      fetch(data_begin_ + tensor.begin + done * sizeof(Stored), std::as_writable_bytes(std::span(block.data(), count)));
      for (std::size_t i = 0; i < count; ++i) into[done + i] = static_cast<T>(one(block[i]));
      done += count;
    }
  }

  std::string source_;
  const file_system* files_ = nullptr;
  detail::descriptor file_;
  std::span<const std::byte> memory_;
  safetensors_header header_;
  std::vector<std::size_t> by_name_;
  std::uint64_t data_begin_ = 0;
};

GYRE_END
