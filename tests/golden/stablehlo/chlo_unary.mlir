module @chlo_unary attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0 = "chlo.acos"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "chlo.asin"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = "chlo.atan"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = "chlo.asinh"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %4 = "chlo.atanh"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %5 = "chlo.cosh"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %6 = "chlo.sinh"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %7 = "chlo.tan"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %8 = "chlo.erf"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %9 = "chlo.erfc"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %10 = "chlo.acosh"(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    %11 = "chlo.lgamma"(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    %12 = "chlo.digamma"(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    %13 = "chlo.erf_inv"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    %14 = "chlo.erf"(%13) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %14) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  }
}
