module @unary_float attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xi1>) {
    %0 = "stablehlo.abs"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %1 = "stablehlo.cbrt"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %2 = "stablehlo.ceil"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %3 = "stablehlo.cosine"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %4 = "stablehlo.exponential"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %5 = "stablehlo.exponential_minus_one"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %6 = "stablehlo.floor"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %7 = "stablehlo.log"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %8 = "stablehlo.log_plus_one"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %9 = "stablehlo.logistic"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %10 = "stablehlo.negate"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %11 = "stablehlo.rsqrt"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %12 = "stablehlo.round_nearest_even"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %13 = "stablehlo.round_nearest_afz"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %14 = "stablehlo.sign"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %15 = "stablehlo.sine"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %16 = "stablehlo.sqrt"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %17 = "stablehlo.tanh"(%arg0) : (tensor<16xf32>) -> tensor<16xf32>
    %18 = "stablehlo.is_finite"(%arg0) : (tensor<16xf32>) -> tensor<16xi1>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xi1>) -> ()
  }
}
