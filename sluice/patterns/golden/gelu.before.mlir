module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>) -> (tensor<128x256xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %1 = "stablehlo.constant"() {value = dense<1.0> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %2 = "stablehlo.constant"() {value = dense<0.70710677> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %3 = "stablehlo.multiply"(%arg0, %2) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %4 = "chlo.erf"(%3) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %5 = "stablehlo.add"(%4, %1) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %6 = "stablehlo.constant"() {value = dense<0.5> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %7 = "stablehlo.multiply"(%arg0, %6) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %8 = "stablehlo.multiply"(%7, %5) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "func.return"(%8) : (tensor<128x256xf32>) -> ()
  }
}
