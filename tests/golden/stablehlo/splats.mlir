module @splats attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main() -> (tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<bf16>, tensor<f64>, tensor<f32>, tensor<f16>, tensor<ui8>, tensor<i8>, tensor<3xi1>, tensor<f32>, tensor<f16>, tensor<i64>, tensor<ui32>, tensor<i1>, tensor<2xi16>, tensor<f32>, tensor<f32>, tensor<f32>) {
    %0 = "stablehlo.constant"() {value = dense<0.1> : tensor<2xf32>} : () -> tensor<2xf32>
    %1 = "stablehlo.constant"() {value = dense<-0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.constant"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.constant"() {value = dense<0x7FC00000> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.constant"() {value = dense<0xFF80> : tensor<bf16>} : () -> tensor<bf16>
    %5 = "stablehlo.constant"() {value = dense<0.3333333333333333> : tensor<f64>} : () -> tensor<f64>
    %6 = "stablehlo.constant"() {value = dense<1.0e-45> : tensor<f32>} : () -> tensor<f32>
    %7 = "stablehlo.constant"() {value = dense<65504.0> : tensor<f16>} : () -> tensor<f16>
    %8 = "stablehlo.constant"() {value = dense<255> : tensor<ui8>} : () -> tensor<ui8>
    %9 = "stablehlo.constant"() {value = dense<-128> : tensor<i8>} : () -> tensor<i8>
    %10 = "stablehlo.constant"() {value = dense<true> : tensor<3xi1>} : () -> tensor<3xi1>
    %11 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %12 = "stablehlo.constant"() {value = dense<0x7C00> : tensor<f16>} : () -> tensor<f16>
    %13 = "stablehlo.constant"() {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
    %14 = "stablehlo.constant"() {value = dense<4294967295> : tensor<ui32>} : () -> tensor<ui32>
    %15 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %16 = "stablehlo.constant"() {value = dense<32767> : tensor<2xi16>} : () -> tensor<2xi16>
    %17 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %18 = "stablehlo.divide"(%17, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %19 = "stablehlo.constant"() {value = dense<3.4028235e+38> : tensor<f32>} : () -> tensor<f32>
    %20 = "stablehlo.constant"() {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %18, %19, %20) : (tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<bf16>, tensor<f64>, tensor<f32>, tensor<f16>, tensor<ui8>, tensor<i8>, tensor<3xi1>, tensor<f32>, tensor<f16>, tensor<i64>, tensor<ui32>, tensor<i1>, tensor<2xi16>, tensor<f32>, tensor<f32>, tensor<f32>) -> ()
  }
}
