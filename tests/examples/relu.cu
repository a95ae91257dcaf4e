__global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] > 0 ? x[i] : 0;
}

__device__ void kevin_plan(const float* x, float* out) {
  const int n = 1024 * 1000;
  kevin::launch<relu>((n + 255) / 256, 256)(x, out, n);
}
