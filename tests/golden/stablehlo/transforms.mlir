module @transforms attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.fft"(%arg0) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 4>} : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
    %1 = "stablehlo.convert"(%arg0) : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
    %2 = "stablehlo.fft"(%1) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %3 = "stablehlo.fft"(%2) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %4 = "stablehlo.real"(%0) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %5 = "stablehlo.imag"(%0) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %6 = "stablehlo.real"(%2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %7 = "stablehlo.imag"(%2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %8 = "stablehlo.real"(%3) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %9 = "stablehlo.fft"(%0) {fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 4>} : (tensor<3xcomplex<f32>>) -> tensor<4xf32>
    "func.return"(%4, %5, %6, %7, %8, %9) : (tensor<3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }
}
