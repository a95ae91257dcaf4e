extern "C" void kernel(const float* x, float* out) {
  for (long i = 0; i < 1024000; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
