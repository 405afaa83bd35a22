module @dense attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<4xi64>, tensor<2x2xui8>, tensor<2x3xi1>, tensor<3xbf16>, tensor<4xf32>, tensor<2xi64>, tensor<0x2xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<1xi1>, tensor<f32>) {
    %0 = "stablehlo.constant"() {value = dense<"0x0000C03F000000C00000C07FC2160100CDCCCC3D00000080"> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %1 = "stablehlo.constant"() {value = dense<"0x0000000000000080FFFFFFFFFFFFFFFF00000000000000000000000000000040"> : tensor<4xi64>} : () -> tensor<4xi64>
    %2 = "stablehlo.constant"() {value = dense<"0x000180FF"> : tensor<2x2xui8>} : () -> tensor<2x2xui8>
    %3 = "stablehlo.constant"() {value = dense<[[true, false, true], [true, false, false]]> : tensor<2x3xi1>} : () -> tensor<2x3xi1>
    %4 = "stablehlo.constant"() {value = dense<"0x803F80BF4940"> : tensor<3xbf16>} : () -> tensor<3xbf16>
    %5 = "stablehlo.constant"() {value = dense<2.5> : tensor<4xf32>} : () -> tensor<4xf32>
    %6 = "stablehlo.constant"() {value = dense<"0x0500000000000000FAFFFFFFFFFFFFFF"> : tensor<2xi64>} : () -> tensor<2xi64>
    %7 = "stablehlo.constant"() {value = dense<> : tensor<0x2xf32>} : () -> tensor<0x2xf32>
    %8 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xi32>
    %9 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x3xf32>
    %10 = "stablehlo.constant"() {value = dense<true> : tensor<1xi1>} : () -> tensor<1xi1>
    %11 = "stablehlo.constant"() {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11) : (tensor<2x3xf32>, tensor<4xi64>, tensor<2x2xui8>, tensor<2x3xi1>, tensor<3xbf16>, tensor<4xf32>, tensor<2xi64>, tensor<0x2xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<1xi1>, tensor<f32>) -> ()
  }
}
