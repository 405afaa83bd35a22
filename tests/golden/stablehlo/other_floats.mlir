module @other_floats attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<5xbf16>, %arg1: tensor<5xf16>, %arg2: tensor<5xf64>) -> (tensor<5xbf16>, tensor<5xbf16>, tensor<5xbf16>, tensor<5xbf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>) {
    %0 = "stablehlo.exponential"(%arg0) : (tensor<5xbf16>) -> tensor<5xbf16>
    %1 = "chlo.erf"(%arg0) : (tensor<5xbf16>) -> tensor<5xbf16>
    %2 = "stablehlo.logistic"(%arg0) : (tensor<5xbf16>) -> tensor<5xbf16>
    %3 = "stablehlo.constant"() {value = dense<0.100097656> : tensor<5xbf16>} : () -> tensor<5xbf16>
    %4 = "stablehlo.add"(%arg0, %3) : (tensor<5xbf16>, tensor<5xbf16>) -> tensor<5xbf16>
    %5 = "stablehlo.exponential"(%arg1) : (tensor<5xf16>) -> tensor<5xf16>
    %6 = "chlo.erf"(%arg1) : (tensor<5xf16>) -> tensor<5xf16>
    %7 = "stablehlo.logistic"(%arg1) : (tensor<5xf16>) -> tensor<5xf16>
    %8 = "stablehlo.constant"() {value = dense<0.099975586> : tensor<5xf16>} : () -> tensor<5xf16>
    %9 = "stablehlo.add"(%arg1, %8) : (tensor<5xf16>, tensor<5xf16>) -> tensor<5xf16>
    %10 = "stablehlo.exponential"(%arg2) : (tensor<5xf64>) -> tensor<5xf64>
    %11 = "chlo.erf"(%arg2) : (tensor<5xf64>) -> tensor<5xf64>
    %12 = "stablehlo.logistic"(%arg2) : (tensor<5xf64>) -> tensor<5xf64>
    %13 = "stablehlo.constant"() {value = dense<0.1> : tensor<5xf64>} : () -> tensor<5xf64>
    %14 = "stablehlo.add"(%arg2, %13) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    "func.return"(%0, %1, %2, %4, %5, %6, %7, %9, %10, %11, %12, %14) : (tensor<5xbf16>, tensor<5xbf16>, tensor<5xbf16>, tensor<5xbf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf16>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>) -> ()
  }
}
